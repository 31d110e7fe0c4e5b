"""A run says what its cells were kept apart by."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.agents import outcome_of
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import Hardened, Sandbox
from rlm_loop.traces import read

PROBLEMS = {
    "auto": "",
    "subprocess": "",
    "hardened": Hardened().problem(sys.executable),
    "sandbox": Sandbox().problem(sys.executable),
}
STRONGEST = next((kind for kind in ("sandbox", "hardened") if not PROBLEMS[kind]), "plain")


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_outcome_and_the_trace_say_so(kind: str, tmp_path: Path) -> None:
    if PROBLEMS[kind]:
        pytest.skip(PROBLEMS[kind])
    model = ScriptedModel(["```python\nfinal_answer = 6 * 7\n```"])
    outcome = ToolLoopAgent(model, repl=kind).run("6 * 7?", trace=tmp_path / "t.jsonl")
    assert outcome.answer == 42
    assert outcome.isolation == {"auto": STRONGEST, "subprocess": STRONGEST}.get(kind, kind)
    assert outcome_of(read(tmp_path / "t.jsonl")).isolation == outcome.isolation


def test_a_run_without_cells_has_none() -> None:
    assert ToolLoopAgent(ScriptedModel(["Paris"])).run("Where?").isolation == ""
