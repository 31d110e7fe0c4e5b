"""A study that goes on where cells run in another isolation says so, once for each arm."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from study_arms import suite

from rlm_loop import ScriptedModel, ToolLoopAgent
from rlm_loop.study import Study, StudyWarning, load_study
from rlm_loop.study.run.isolations import Isolations


def ran(arm: str, *kinds: str) -> list[dict[str, Any]]:
    return [{"arm": arm, "isolation": kind} for kind in kinds]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (ran("code", "sandbox"), ran("code", "hardened", "hardened"), ["code"]),
        (ran("code", "sandbox"), ran("code", "", "sandbox"), []),
        (ran("code", "sandbox", "hardened"), ran("code", "hardened"), []),  # a mixture already
        (ran("code", ""), ran("code", "hardened"), []),  # no cell of it ran yet
        ([], ran("code", "hardened"), []),
        (ran("code", "sandbox"), ran("other", "hardened"), []),
        (ran("a", "sandbox") + ran("b", "sandbox"), ran("a", "plain") + ran("b", "plain"), ["a", "b"]),
        ([{"arm": "code"}], ran("code", "plain"), []),  # a row of before it was recorded
    ],
)
def test_the_first_row_that_differs_is_told(before: Any, after: Any, told: list[str]) -> None:
    known = Isolations(before)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for row in after:
            known.learn(row)
    assert [str(w.message).split(":")[0] for w in said] == told


def test_a_study_that_goes_on_elsewhere_says_so(tmp_path: Path) -> None:
    agent = ToolLoopAgent(model=ScriptedModel(["```python\nfinal_answer = 1\n```"] * 2), repl="plain")
    study = Study("mine", {"code": agent}, suite("s", 2))
    study.run(tmp_path, False, limit=1)
    rows = tmp_path / "results.jsonl"
    rows.write_text(rows.read_text().replace('"isolation":"plain"', '"isolation":"container"'))
    with pytest.warns(StudyWarning, match="cells run as 'plain' here, in earlier rows of this folder as 'container'"):
        study.run(tmp_path, False)
    assert [row["isolation"] for row in load_study(tmp_path).rows] == ["container", "plain"]
