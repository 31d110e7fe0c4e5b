"""The committed notebooks: a question first, a finding last, read without being run; and the script that runs them."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import run_notebooks as script

pandas = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: A folder of this machine or of a temporary file; `/home/...` in the words of a text is none.
PLACES = re.compile(r"/(?:tmp|root|home|Users|work)/\w|/pytest-of-")
LIMIT = 700_000  # bytes: a page that is read in a browser
#: What a person reads in five minutes, pictures and tables looked at: words of text, words that cells print, cells.
WORDS, PRINTED, CELLS = 550, 120, 20
SWITCH = 'MODEL = os.environ.get("RLM_LOOP_MODEL")  # "local", say; without it what was recorded is read'
#: A unified diff, and the beginning of a figure's alternative text.
DIFF = re.compile(r"^\s*@@ |^\s*(?:---|\+\+\+) \S", re.M)
ALT = re.compile("Share of|Paired|Stacked bars|Heat map|Overhead by turn|Resolve rate|Tasks resolved and|Call tree")


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def python(cell: dict[str, Any]) -> str:
    """The cell without lines that are for IPython or a shell.  A cell of a magic (`%%rlm`) holds no Python."""
    if source(cell).startswith("%%"):
        return ""
    return "\n".join(line for line in source(cell).splitlines() if not line.startswith(("%", "!")))


def code(path: Path) -> list[dict[str, Any]]:
    return [c for c in cells(path) if c["cell_type"] == "code"]


def streams(path: Path) -> list[str]:
    return ["".join(o["text"]) for c in code(path) for o in c["outputs"] if o["output_type"] == "stream"]


def test_the_subjects_are_all_there() -> None:
    assert " ".join(p.stem.partition("_")[2] for p in NOTEBOOKS) == (
        "quickstart token_overhead resolve_rates ablations recursion_and_long_contexts your_own_model_and_tasks"
        " from_notebook_to_study harness_tax"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
class TestEach:
    def test_it_opens_with_its_question_asks_no_model_by_itself_and_ends_with_its_finding(self, path: Path) -> None:
        first, *_, last = cells(path)
        assert re.match(r"# [^\n]*\?(\n|$)", source(first))
        assert "`RLM_LOOP_MODEL=local`" in source(first)
        assert source(code(path)[0]).splitlines().count(SWITCH) == 1
        heading, _, finding = source(last).partition("\n")
        assert (last["cell_type"], heading) == ("markdown", "## Finding")
        assert len(finding.split()) >= 30
        assert re.search(r"\d", finding), "a finding has numbers"

    def test_it_is_read_in_five_minutes(self, path: Path) -> None:
        text = [source(c) for c in cells(path) if c["cell_type"] == "markdown"]
        assert sum(len(t.split()) for t in text) <= WORDS
        assert sum(len(printed.split()) for printed in streams(path)) <= PRINTED
        assert len(cells(path)) <= CELLS
        assert path.stat().st_size < LIMIT
        plain = [o["data"]["text/plain"] for c in code(path) for o in c["outputs"] if "text/plain" in o.get("data", {})]
        # no value is shown as a record of pages where there is no HTML
        assert max((len("".join(text)) for text in plain), default=0) < 3000

    def test_it_is_read_without_being_run(self, path: Path) -> None:
        numbers = [c["execution_count"] for c in code(path)]
        assert numbers == list(range(1, len(numbers) + 1))
        for cell in code(path):
            last = (ast.parse(python(cell)).body or [None])[-1]
            ends_in_a_value = isinstance(last, ast.Expr) and not source(cell).rstrip().endswith(";")
            assert cell["outputs"] or not (ends_in_a_value or source(cell).startswith("%%")), source(cell)

    def test_no_cell_failed_prints_a_diff_or_a_figure_or_names_a_folder_of_the_machine(self, path: Path) -> None:
        for printed in streams(path):
            assert not DIFF.search(printed), printed
            assert not ALT.match(printed), printed
        for cell in code(path):
            assert not [o for o in cell["outputs"] if o["output_type"] == "error" or o.get("name") == "stderr"]
            shown = [o.get("text", "") for o in cell["outputs"]]
            shown += [t for o in cell["outputs"] for kind, t in o.get("data", {}).items() if kind.startswith("text/")]
            assert not [text for text in shown if PLACES.search("".join(text))], source(cell)

    def test_it_has_no_logic_that_the_package_should_own(self, path: Path) -> None:
        """Functions and classes only where a reader would write his own: a tool, a model, a task, an injector."""
        for cell in code(path):
            if "yours" in cell["metadata"].get("tags", ()):
                continue
            body = ast.parse(python(cell)).body
            own = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
            assert own in ([], ["model"], ["by_size"]), source(cell)  # `model` chooses what is recorded or live
            assert len(body) <= 16, source(cell)


def test_the_live_view_and_the_magic_are_shown_as_they_are_left() -> None:
    """Both in the quickstart: the run's end and the note below it, with nothing that only works while it goes on."""
    found = [c for c in code(NOTEBOOKS[0]) if "live=True" in source(c) or source(c).startswith("%%rlm")]
    assert len(found) == 2
    for cell, stop in zip(found, ("answered", "repeated"), strict=True):
        (shown,) = cell["outputs"]
        html = "".join(shown["data"]["text/html"])
        assert (stop in html, "<progress" in html) == (True, False)
        assert f"[{stop}, " in "".join(shown["data"]["text/plain"])
    assert "code: exact | lean: exact" in "".join(streams(NOTEBOOKS[0]))


def test_the_finding_on_the_law_is_what_its_table_says() -> None:
    law = pandas.read_csv(ROOT / "experiments/overhead/results/law.csv")
    later = law[law.turn > 10]
    errors = ((later.law - later.tokens).abs() / later.tokens).groupby(later.agent).max().sort_values()
    *_, next_to_worst, worst = errors
    frames = law.groupby("agent")[["once", "per_turn"]].first().round()
    coding = frames.loc[["pi", "cline", "opencode", "codex", "codex_tools", "gemini_cli", "claude_code", "qwen_code"]]
    finding = source(cells(NOTEBOOKS[1])[-1]).replace("\n", " ")
    for said in (
        f"within {worst * 100:.1f} %",
        f"for {len(errors)} agents",
        f"within {next_to_worst * 100:.1f} %",
        f"for {len(errors) - 1} of them",
        f"adds {frames.loc['mellea'].per_turn:.0f} a turn",
        f"{coding.once.min():,.0f} to {coding.once.max():,.0f} tokens",
        f"({coding.per_turn.max():.0f}, and minRLM {frames.loc['minrlm'].per_turn:.0f})",
    ):
        assert said in finding


@pytest.fixture(autouse=True)
def switches_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script sets variables for its kernels; they are put back."""
    for name in ("RLM_LOOP_MODEL", "PIP_NO_INDEX", "HF_HUB_OFFLINE", "PATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.mark.slow
def test_running_saving_and_being_out_of_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Output of a cell may differ, but not in kind; a widget, which needs its kernel, is not kept."""
    alive = (
        "{'application/vnd.jupyter.widget-view+json': {'model_id': 'x'}, 'text/plain': os.environ.get(NAME, 'none')}"
    )
    source = f"from IPython.display import display\nimport os; NAME = 'RLM_LOOP_MODEL'\ndisplay({alive}, raw=True)"
    nbformat = pytest.importorskip("nbformat")
    path, book = tmp_path / "one.ipynb", nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(s) for s in ("1", source)]
    nbformat.write(book, path)
    before = path.read_bytes()
    assert script.main(tmp_path) == 1
    assert "cell 1 shows a value, and nothing is committed" in capsys.readouterr().err
    assert path.read_bytes() == before  # it runs a copy
    assert script.main(tmp_path, keep=True) == 0
    shown = [{kind: "".join(text) for kind, text in o["data"].items()} for c in code(path) for o in c["outputs"]]
    assert shown == [{"text/plain": "1"}, {"text/plain": "none"}]
    assert "execution" not in code(path)[0]["metadata"]
    saved = path.read_text("utf-8")
    assert script.main(tmp_path, live=True) == 0  # nothing is compared or written then
    assert (path.read_text("utf-8"), os.environ["RLM_LOOP_MODEL"]) == (saved, "local")
    path.write_text(saved.replace('"none"', '"another"'))
    assert script.main(tmp_path) == 0
    assert script.main(tmp_path, names=["09"]) == 1
    assert "no notebooks with 09 in their names" in capsys.readouterr().out
