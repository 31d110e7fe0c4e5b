"""Whichever texts the second round of the tuning chooses, the studies that take them are whole and fair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dry_study as dry
import pytest

from experiments.tuning.best import RESULTS, chosen
from experiments.tuning.study import SECOND, best
from rlm_loop.study import load_study, load_study_file

pytest.importorskip("pandas")

THROUGH = {loop: best(load_study(RESULTS / "round1"), loop) for loop in ("code", "lean", "react")}
#: By study, how many episodes there are, and how many more where the best lean text has constrained replies.
STUDIES = {"answer_contract": (640, 128), "noise_floor": (480, 0), "referee_arms": (336, 24), "context_dose": (192, 0)}


def second_round(folder: Path, winners: int) -> Path:
    """A second round in which of each loop's three candidates the one of this place resolves all."""
    rows: list[dict[str, Any]] = [
        {
            "arm": arm,
            "model": "m",
            "suite": "s/dev",
            "task": f"t{n}",
            "seed": 0,
            "trace": None,
            "error": None,
            "resolved": place == winners,
            "input_tokens": 1,
            "output_tokens": 1,
            "started": "2026-01-01",
        }
        for arms in THROUGH.values()
        for place, arm in enumerate(arms)
        for n in range(sum(SECOND.values()))
    ]
    lock = {"schema": 1, "name": "tuning-round2", "arms": {}, "models": ["m"], "seeds": [0], "tasks": {}}
    (folder / "study.json").write_text(json.dumps(lock))
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_takes_any_winner(name: str, place: int, tmp_path: Path) -> None:
    round2 = str(second_round(tmp_path, place))
    winners = chosen(round2=round2)
    assert {loop: one.name for loop, one in winners.items()} == {loop: arms[place] for loop, arms in THROUGH.items()}
    study = load_study_file(dry.EXPERIMENTS / name, round2=round2)
    assert dry.differing(study) <= set(study.differs or ())
    usual, more = STUDIES[name]
    assert len(study.episodes()) == usual + more * winners["lean"].constrained
    (arms, *_) = study.agents().values()
    for loop, one in winners.items():
        first = next((arm for arm in arms if arm.startswith(loop)), None)
        if first is not None:
            assert getattr(arms[first], "system", None) == one.make().system
