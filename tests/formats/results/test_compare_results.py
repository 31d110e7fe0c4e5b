"""What is said of results of anybody's, and numbers that another package gives as well."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rlm_loop.cli.main import main
from rlm_loop.formats import load_results
from rlm_loop.report import compare_page, effect_table, flip_table
from rlm_loop.study import Comparison, StudyError, compare

FILES = Path(__file__).parent / "files"
STUDY = Path(__file__).parents[3] / "experiments" / "lean_vs_react" / "results"

Rows = list[dict[str, Any]]


@pytest.mark.parametrize(
    ("paths", "arms", "difference", "p", "ratio"),
    [
        ([FILES / "plain.eval", FILES / "tools.eval"], [], 0.5, 0.25, 2.726340380431595),
        ([FILES / "lm_eval" / "small", FILES / "lm_eval" / "large"], [], 0.2, 0.2890625, None),
        ([STUDY], ["code", "lean"], -0.2222222222222222, 0.0078125, 1.401859021135602),
    ],
)
def test_numbers_are_those_of_statsmodels(
    paths: Sequence[Path], arms: list[str], difference: float, p: float, ratio: float | None
) -> None:
    """statsmodels 0.14: `mcnemar(table, exact=True)`, and the means by `OLS` of differences and of log-ratios on 1."""
    results = load_results(*paths)
    compared = (results.only(*arms) if arms else results).compare()
    by_measure = {c.measure: c for c in compared.contrasts}
    assert by_measure["resolved"].estimate == pytest.approx(difference)
    assert by_measure["resolved"].p_difference == pytest.approx(p)
    assert by_measure["input_tokens"].estimate == (pytest.approx(ratio) if ratio else None)


def rows(*suites: tuple[str, int, int, int], seeds: int = 1) -> Rows:
    """Of each suite how many tasks are gained, lost, and alike."""
    found: Rows = []
    for suite, gained, lost, alike in suites:
        outcomes = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * alike
        for n, both in enumerate(outcomes):
            for arm, right in zip(("a", "b"), both, strict=True):
                for seed in range(seeds):
                    found.append({"task": n, "suite": suite, "arm": arm, "resolved": right, "seed": seed, "tokens": 7})
    return found


def text(compared: Comparison) -> str:
    return " ".join(html.unescape(re.sub("<[^>]*>", "", compare_page(compared))).split())


def test_what_is_said_first_is_the_difference() -> None:
    compared = compare(pd.DataFrame(rows(("easy", 9, 1, 20), ("hard", 2, 8, 20))))
    said = text(compared)
    assert "b resolves 85.0 %, a 81.7 %: +3.3 points (95 % interval " in said
    assert ", on 60 tasks." in said
    assert "b alone resolves 11, a alone 9; exact McNemar test: p = 0.82." in said
    assert "A new study shows a difference of 5 points with a chance of 80 % on about 1," in said
    assert [(suite.gained, suite.lost) for suite in compared.suites] == [(9, 1), (2, 8)]
    assert "b depends on the suite (2 suites; permutation of Cochran's Q, exploratory: p" in said
    assert compared.interactions[0].p < 0.02
    listed = flip_table(compared, most=3)
    assert listed is not None
    assert (listed.rows[0], listed.notes) == (["b", "gained", "easy", "0"], ["and 17 more"])
    assert [row[1] for row in effect_table(compared).rows] == ["tasks resolved", "tokens"]
    assert str(compared).startswith("b against a depends on the suite (2 suites; permutation")
    assert "), points resolved: easy +26.7 (" in str(compared)
    assert "\nb against a, on 60 tasks of 2 suites pooled by pairs: +3.3 points resolved (95 % int" in str(compared)
    assert "Pooled effects weigh the suites so: easy 50 %, hard 50 %." in compared.methods
    assert "so no claim is judged" in str(compared)


def test_seeds_of_one_task_are_no_independent_tasks() -> None:
    table = rows(("s", 6, 1, 20))
    one, five = compare(table), compare(rows(("s", 6, 1, 20), seeds=5))
    assert five.contrasts[0].p_difference == one.contrasts[0].p_difference
    assert "on 135 pairs of task and seed, 27 tasks" in text(five)
    assert "exact McNemar test by task" in text(five)
    assert one.suites[0].gained == 6


def test_missing_scores_widen_the_interval() -> None:
    table = rows(("s", 6, 1, 20))
    whole = compare(table).contrasts[0]
    for record in table[-6:]:
        record["resolved"] = None if record["arm"] == "b" else record["resolved"]
    compared = compare(table)
    part = compared.contrasts[0]
    assert (part.missing, part.policy, part.used) == (3, "bounds", 27)
    assert part.low < whole.low < whole.high <= part.high
    assert "3 of 27 pairs lack a score; the interval covers the worst and the best that they could be." in text(
        compared
    )


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (
            pd.DataFrame({"task": [1], "ok": [True]}),
            r"the table has no column for arm \(arm, system, .*; it has task, ok",
        ),
        (pd.DataFrame(), "the table holds no rows"),
        ([{"task": 1, "arm": "a", "resolved": 1}] * 2, "the table, row 2: task '1' of arm 'a' is in row 1 already"),
        ([{"task": 1, "arm": "a", "resolved": 1}], "a comparison needs two arms; there is only a"),
        (7, "compare takes results, a frame or a list of rows, not int"),
    ],
)
def test_frames_that_cannot_be_compared(frame: Any, told: str) -> None:
    with pytest.raises(StudyError, match=told):
        compare(frame)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FILES / "plain.eval"), f"new={FILES / 'tools.eval'}"]
    assert main(["compare", *files]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "new resolves 83.3 %, scripted/plain 33.3 %: +50.0 points (95 % interval −4.0 to +77.3), on 6"
    )
    assert "new  gained                  sum-1" in out
    assert main(["compare", *files, "--baseline", "new"]) == 0
    assert capsys.readouterr().out.startswith("scripted/plain resolves 33.3 %, new 83.3 %: −50.0 points")
    assert main(["compare", str(FILES / "plain.eval")]) == 2
    assert "there is only the arm 'scripted/plain'; a comparison needs two" in capsys.readouterr().err
    assert main(["compare", *files, "--column", "task"]) == 2
    assert "--column takes NAME=VALUE" in capsys.readouterr().err
    assert main(["compare", *files, "--missing", "ignore"]) == 2
    assert "there is no policy 'ignore'" in capsys.readouterr().err
