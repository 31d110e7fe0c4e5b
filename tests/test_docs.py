"""The documentation cannot drift: its examples are run, or checked for names and options that are gone."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
import sys
import types
from pathlib import Path

import docs_examples as docs
import pytest

from rlm_loop.cli.main import main

PAGES = {str(page.relative_to(docs.ROOT)): page for page in docs.pages()}
#: A docstring that begins so leaves its reader to find the subject; 1 in 100 may.
NO_SUBJECT = {"what", "who", "how", "whether", "where", "why", "which", "when", "one", "those", "that"}
#: How commands begin, and most examples.
CODE = re.compile(r"\s*(\$ |rlm-loop |python |import \w|from \S+ import )")
CHECKED = {**PAGES, "README.md": docs.ROOT / "README.md", "CONTRIBUTING.md": docs.ROOT / "CONTRIBUTING.md"}


class Reader:
    """Goes through a page as a reader would: one folder, one namespace, the results of this repository at hand."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.module = types.ModuleType(f"example_of_{page.stem}")
        self.printed: str | None = None
        for name in ("experiments", "notebooks", "benchmarks"):
            (folder / name).symlink_to(docs.ROOT / name)

    def read(self, block: docs.Block) -> None:
        if block.printed:
            assert self.printed is not None, f"{block.where}: nothing was run before"
            assert tidy(self.printed) == tidy(block.text), f"{block.where}: this is not what was printed"
        elif block.kind in ("python", "setup") and not block.why:
            self._python(block)
        elif block.kind == "console" and not block.why:
            for words, shown in block.commands():
                self._command(block, words, shown)

    def _python(self, block: docs.Block) -> None:
        """Run a block; errors show the line of the page."""
        name = f"<{block.where}>"
        code = "\n" * (block.line - 1) + block.text
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, name, "exec"), vars(self.module))
        self.printed = out.getvalue()

    def _command(self, block: docs.Block, words: list[str], shown: list[str]) -> None:
        why = "say why it is not run before the block: <!-- not run: ... -->"
        assert words[0] == "rlm-loop", f"{block.where}: `{words[0]}` is not run; {why}"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = main(words[1:])
        self.printed = out.getvalue()
        assert code == 0, f"{block.where}: {' '.join(words)} ended with {code}"
        for line in shown:
            there = line.strip() == "..." or tidy(line) in tidy(self.printed)
            assert there, f"{block.where}: not in the output: {line}"


def tidy(text: str) -> str:
    return " ".join(text.split())


def runs(page: Path) -> bool:
    return any(b.kind in ("python", "console") and not b.why for b in docs.blocks(page))


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if runs(page)])
def test_the_examples_of_a_page_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(PAGES[name], tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, reader.module.__name__, reader.module)
    monkeypatch.setenv("COLUMNS", "200")
    for block in docs.blocks(PAGES[name]):
        reader.read(block)


@pytest.mark.parametrize("name", CHECKED)
def test_names_and_options_exist(name: str) -> None:
    wrong: list[str] = []
    for block in docs.blocks(CHECKED[name]):
        names = docs.unknown_names(block.text) if block.kind == "python" else []
        wrong += [f"{block.where}: there is no {u}" for u in (*docs.unknown_options(block.text), *names)]
    assert wrong == []


@pytest.mark.parametrize("name", PAGES)
def test_code_is_fenced_with_its_language(name: str) -> None:
    """Else it is neither run nor coloured."""
    bare = [b for b in docs.blocks(PAGES[name]) if b.kind in ("indented", "", "sh", "bash")]
    assert [b.where for b in bare if CODE.match(b.text)] == [], "fence these as ```python or ```console"


STALE = """<!-- setup
x = 1
-->
```python
print(x)
```
<!-- prints -->
```text
2
```
<!-- not run: slow -->
```python
from rlm_loop import FatAgent, LeanAgent
LeanAgent(modle='local', **more), mine(anything=1)
```
```console
$ rlm-loop trace show run.jsonl --htm out.html | cat -n
$ rlm-loop trace shwo
```
"""


def test_what_is_out_of_date_on_a_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(STALE, encoding="utf-8")
    setup, example, shown, unread, console = docs.blocks(tmp_path / "page.md")
    reader = Reader(shown.page, tmp_path)
    reader.read(setup)
    reader.read(example)
    with pytest.raises(AssertionError, match="not what was printed"):
        reader.read(shown)
    reader.read(unread)
    assert docs.unknown_names(unread.text) == ["rlm_loop.FatAgent", "LeanAgent(modle=)"]
    assert docs.unknown_options(console.text) == ["--htm", "shwo"]


def test_an_experiment_is_told_in_800_words() -> None:
    readmes = (docs.ROOT / "experiments").glob("*/README.md")
    words = {readme.parent.name: len(readme.read_text("utf-8").split()) for readme in readmes}
    assert {name: count for name, count in words.items() if count > 800} == {}


def test_docstrings_begin_with_a_verb_or_a_name() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    trees = [ast.parse(path.read_text("utf-8")) for path in (docs.ROOT / "rlm_loop").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)]
    texts = [text for node in nodes if (text := ast.get_docstring(node))]
    without = [text for text in texts if text.split()[0].strip(".,:;`").lower() in NO_SUBJECT]
    assert len(without) <= len(texts) / 100, without
