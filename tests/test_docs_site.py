"""The site is whole: every page is listed, every public name is in the reference, nothing comes from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import docs_examples as docs
import pytest
from browser import MISSING, Browser, chromium
from lazy import needs

pytestmark = needs("mkdocs", "mkdocstrings", "nbconvert", extra="docs")

HOOKS = docs.ROOT / "docs" / "site_hooks"
#: Addresses that a page would load, as opposed to links that a reader may follow.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video)[^>]*\ssrc=["'](https?:)?//|<link[^>]*rel=["'](?:stylesheet|preload|icon)["'][^>]*href=["'](https?:)?//""",
    re.IGNORECASE,
)

#: What a newcomer looks for, and the page that answers.
SOUGHT = [("injector", "loops"), ("which model should I use", "start"), ("vllm", "start"), ("max steps", "concepts")]

#: Waits until a search has the page among its hits, and gives up after a while: a key may come before the index.
FOUND = """new Promise(done => {
  const hits = () => [...document.querySelectorAll('.md-search-result__link')]
  const there = () => hits().some(hit => hit.href.includes('/%s.html'))
  const look = left => there() ? done(true) : left ? setTimeout(look, 50, left - 1) : done(false)
  look(100)
})"""


def hook(name: str) -> ModuleType:
    spec: Any = importlib.util.spec_from_file_location(f"site_hook_{name}", HOOKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link, a missing page or one that no menu lists ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=docs.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_there_are_few_pages_and_words() -> None:
    words = [len(page.read_text("utf-8").split()) for page in docs.pages()]
    assert len(words) <= 22
    assert sum(words) <= 28_000  # what is added takes the place of something else


@pytest.mark.slow
def test_every_page_is_there_loads_nothing_from_elsewhere_and_names_no_folder_of_this_machine(site: Path) -> None:
    written = [page.relative_to(docs.ROOT / "docs") for page in docs.pages()]
    written += [notebook.relative_to(docs.ROOT) for notebook in (docs.ROOT / "notebooks").glob("*.ipynb")]
    assert [str(p) for p in written if not (site / p.with_suffix(".html")).is_file()] == []
    notebook = (site / "notebooks" / "02_token_overhead.html").read_text(encoding="utf-8")
    outputs = ("Figure made by the cell above", '<div class="cell-output">', "<table")
    assert [kept for kept in outputs if kept not in notebook] == []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert LOADED.search(text) is None, page
        assert str(docs.ROOT) not in text, page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_it_opens_from_a_folder(site: Path, tmp_path: Path) -> None:
    """In a browser, without a server: it asks the network for nothing, is dark where the system is, and can search."""
    if chromium() is None:
        pytest.skip(MISSING)
    with Browser(tmp_path) as browser:
        browser.open(site / "index.html", dark=True)
        assert [r for r in browser.requests() if r.startswith("http")] == []
        assert browser.complaints() == []
        assert browser.value("document.body.dataset.mdColorScheme") == "slate"

        def finds(words: str, page: str) -> bool:
            browser.value("{const box = document.querySelector('.md-search__input'); box.value = ''; box.focus()}")
            browser.type(words[:-1])
            browser.press(words[-1])  # the search listens to keys
            return bool(browser.value(FOUND % page))

        for words, page in SOUGHT:
            assert any(finds(words, page) for _ in range(20)), words


@pytest.mark.slow
def test_every_public_name_is_documented_once(site: Path) -> None:
    made = hook("reference").pages()
    names = [f"{page.module}.{name}" for page in made for name in page.names]
    assert len(names) == len(set(names))
    text = {page.module: (site / page.path).with_suffix(".html").read_text(encoding="utf-8") for page in made}
    missing = [f"{p.module}.{n}" for p in made for n in p.names if f'id="{p.module}.{n}"' not in text[p.module]]
    assert missing == []


def test_examples_in_docstrings_become_code_and_the_command_line_page_has_every_command_and_option() -> None:
    docstring = "Words.\n\n>>> f(1)  # doctest: +SKIP\n1\n\nMore."
    assert hook("reference").described(docstring) == "Words.\n\n```python\n>>> f(1)\n1\n```\n\nMore."
    page = hook("command_line").page()
    commands = ("run", "study run", "study report", "trace replay", "meter", "models pull")
    assert [c for c in commands if f"\n## rlm-loop {c}\n" not in page] == []
    assert ("| `--max-tokens <int range>` |" in page, "Usage: " in page) == (True, False)
