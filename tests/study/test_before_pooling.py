"""Suites one by one before they are pooled; a plan that was changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from test_analysis import study

from rlm_loop.study import Analysis, Results, compare, load_study

#: Of each suite: pairs that both resolve, only the arm, only the baseline, neither.
SUITES = {"easy": (30, 9, 1, 0), "hard": (2, 1, 7, 10)}


def results(suites: Mapping[str, tuple[int, int, int, int]] = SUITES, plan: Analysis | None = None) -> Results:
    rows: list[dict[str, Any]] = []
    for suite, counts in suites.items():
        outcomes = [o for o, n in zip([(1, 1), (1, 0), (0, 1), (0, 0)], counts, strict=True) for _ in range(n)]
        for i, of in enumerate(outcomes):
            for arm, resolved, tokens in (("base", of[1], 100 + i), ("lean", of[0], 50 if suite == "easy" else 200)):
                rows.append(
                    {"arm": arm, "model": "m", "suite": suite, "task": f"{suite}{i}", "seed": 0, "error": None,
                     "resolved": bool(resolved), "input_tokens": tokens, "output_tokens": 1, "cost": 0.0,
                     "seconds": 1.0, "steps": 1, "started": ""}
                )  # fmt: skip
    return Results(rows, {} if plan is None else {"analysis": plan.locked()})


def test_what_is_said_first_is_suite_by_suite_and_whether_they_agree() -> None:
    compared = compare(results(), "base")
    said = compared.sentences()
    assert said[0].startswith("lean against base with m depends on the suite (2 suites; permutation of Cochran's Q")
    assert "), points resolved: easy +20.0 (" in said[0]
    assert said[1].startswith("lean against base, on 60 tasks of 2 suites pooled by pairs with m: +3.3 points")
    assert compare(results({"easy": SUITES["easy"]}), "base").before_pooling == []


def test_plans_keep_their_hash() -> None:
    assert Analysis("lean").locked()["digest"] == "b0071f10f89789a5"  # as experiments/mcp_as_code has it


def test_a_plan_that_was_changed_after_it_was_locked_judges_nothing(tmp_path: Path) -> None:
    study(Analysis(margin=0.1)).run(tmp_path, progress=False)
    path = tmp_path / "study.json"
    assert not compare(load_study(tmp_path)).exploratory
    path.write_text(path.read_text().replace('"margin": 0.1', '"margin": 0.3'))
    compared = compare(load_study(tmp_path))
    assert compared.exploratory
    assert "study.json is not the one that was locked before the run" in compared.verdicts[0]
