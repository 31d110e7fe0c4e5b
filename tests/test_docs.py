"""The documentation cannot drift: its examples are run, or checked for names and options that are gone."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import sys
import types
from pathlib import Path
from typing import Any

import docs_examples as docs
import pytest

from rlm_loop.cli.main import main

PAGES = {str(page.relative_to(docs.ROOT)): page for page in docs.pages()}
#: A docstring that begins so leaves its reader to find the subject; 1 in 100 may.
NO_SUBJECT = {"what", "who", "how", "whether", "where", "why", "which", "when", "one", "those", "that"}
CHECKED = {**PAGES, "README.md": docs.ROOT / "README.md", "CONTRIBUTING.md": docs.ROOT / "CONTRIBUTING.md"}


class Reader:
    """Goes through a page as a reader would: one folder, one namespace, the results of this repository at hand."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.module = types.ModuleType(f"example_of_{page.stem}")
        self.folder = folder
        self.printed: str | None = None
        for name in ("experiments", "notebooks", "benchmarks"):
            (folder / name).symlink_to(docs.ROOT / name)

    def read(self, block: docs.Block) -> None:
        if block.printed:
            assert self.printed is not None, f"{block.where}: nothing was run before"
            assert tidy(self.printed) == tidy(block.text), f"{block.where}: this is not what was printed"
        elif block.why:
            return
        elif block.kind in ("python", "setup"):
            self.printed = self._python(block)
        elif block.kind == "console":
            for words, shown in block.commands():
                self._command(block, words, shown)

    def _python(self, block: docs.Block) -> str:
        """Run a block; errors show the line of the page."""
        name = f"<{block.where}>"
        code = "\n" * (block.line - 1) + block.text
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, "exec"), vars(self.module))
        return out.getvalue()

    def _command(self, block: docs.Block, words: list[str], shown: list[str]) -> None:
        if words[0] != "rlm-loop":
            pytest.fail(f"{block.where}: `{words[0]}` is not run; say why before the block: <!-- not run: ... -->")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = main(words[1:])
        self.printed = out.getvalue()
        assert code == 0, f"{block.where}: {' '.join(words)} ended with {code}"
        told = tidy(self.printed)
        for line in shown:
            assert line.strip() == "..." or tidy(line) in told, f"{block.where}: not in the output: {line}"


def tidy(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader(PAGES[request.param], tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, made.module.__name__, made.module)
    monkeypatch.setenv("COLUMNS", "200")
    return made


def runs(page: Path) -> bool:
    return any(b.kind in ("python", "console") and not b.why for b in docs.blocks(page))


@pytest.mark.parametrize(
    ("reader", "name"), [(n, n) for n, page in PAGES.items() if runs(page)], ids=lambda v: v, indirect=["reader"]
)
def test_the_examples_of_a_page_run(reader: Reader, name: str) -> None:
    for block in docs.blocks(PAGES[name]):
        reader.read(block)


@pytest.mark.parametrize("name", CHECKED)
def test_names_and_options_exist(name: str) -> None:
    wrong: list[str] = []
    for block in docs.blocks(CHECKED[name]):
        wrong += [f"{block.where}: {words} has no {u}" for words in docs.rlm_loop_commands(block.text)
                  for u in docs.unknown_options(words)]  # fmt: skip
        if block.kind == "python":
            wrong += [f"{block.where}: there is no {u}" for u in docs.unknown_names(block.text)]
    assert wrong == []


@pytest.mark.parametrize("name", PAGES)
def test_code_is_fenced_with_its_language(name: str) -> None:
    """Else it is neither run nor coloured."""
    bare = [b.where for b in docs.blocks(PAGES[name]) if b.kind in ("indented", "", "sh", "bash") and is_code(b.text)]
    assert bare == [], "fence these as ```python or ```console"


def is_code(text: str) -> bool:
    """Python that does something, or commands."""
    if text.lstrip().startswith(("$ ", "rlm-loop ", "python ")):
        return True
    try:
        return any(isinstance(n, ast.Call | ast.Import | ast.ImportFrom) for n in ast.walk(ast.parse(text)))
    except SyntaxError:
        return False


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("```python\nx = 1\n```", [("python", "", False)]),
        ("<!-- not run: slow -->\n```python\nx = 1\n```", [("python", "slow", False)]),
        ("```python\nprint(1)\n```\n\n<!-- prints -->\n```text\n1\n```", [("python", "", False), ("text", "", True)]),
        ("<!-- setup\nx = 1\n-->\n\nWords.", [("setup", "", False)]),
        ("Words.\n\n    indented()\n", [("indented", "", False)]),
    ],
)
def test_blocks_and_their_marks(tmp_path: Path, text: str, kinds: list[Any]) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert [(b.kind, b.why, b.printed) for b in docs.blocks(page)] == kinds


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("rlm-loop trace show run.jsonl --html out.html | cat -n", []),
        ("$ rlm-loop trace show run.jsonl --htm out.html", ["--htm"]),
        ("rlm-loop trace shwo run.jsonl", ["shwo"]),
        ('rlm-loop run "..." \\\n  --nope', ["--nope"]),
    ],
)
def test_options_that_are_gone_are_found(text: str, wrong: list[str]) -> None:
    assert [u for words in docs.rlm_loop_commands(text) for u in docs.unknown_options(words)] == wrong


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("from rlm_loop import LeanAgent\nLeanAgent(model='local')", []),
        ("from rlm_loop import FatAgent", ["rlm_loop.FatAgent"]),
        ("LeanAgent(modle='local')", ["LeanAgent(modle=)"]),
        ("mine(anything=1)", []),
    ],
)
def test_names_that_are_gone_are_found(code: str, wrong: list[str]) -> None:
    assert docs.unknown_names(code) == wrong


@pytest.mark.parametrize("printed", ["2", ""])
def test_other_output_than_shown_fails(tmp_path: Path, printed: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\nprint(1)\n```\n<!-- prints -->\n```text\n{printed}\n```\n", encoding="utf-8")
    reader = Reader(page, tmp_path)
    example, shown = docs.blocks(page)
    reader.read(example)
    with pytest.raises(AssertionError, match="not what was printed"):
        reader.read(shown)


@pytest.mark.parametrize(
    "readme", sorted((docs.ROOT / "experiments").glob("*/README.md")), ids=lambda path: path.parent.name
)
def test_an_experiment_is_told_in_800_words(readme: Path) -> None:
    assert len(readme.read_text("utf-8").split()) <= 800


def test_docstrings_begin_with_a_verb_or_a_name() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in (docs.ROOT / "rlm_loop").rglob("*.py")]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [
        text
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, kinds)
        if (text := ast.get_docstring(node))
    ]
    without = [text for text in texts if text.split()[0].strip(".,:;`").lower() in NO_SUBJECT]
    assert len(without) <= len(texts) / 100, without
