"""What is said of results of anybody's, its page, and numbers that another package gives as well."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rlm_loop.cli.main import main
from rlm_loop.formats import load_results, load_sources
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


class Page(html.parser.HTMLParser):
    """The text of a page, its tags and ids, and all addresses that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*paths: Path | str) -> Page:
    loaded = load_sources(*paths)
    return Page(compare_page(loaded.results.compare(), loaded.notes))


def text(compared: Comparison) -> str:
    return " ".join(html.unescape(re.sub("<[^>]*>", "", compare_page(compared))).split())


def test_what_is_said_first_is_the_difference() -> None:
    compared = compare(pd.DataFrame(rows(("easy", 9, 1, 20), ("hard", 2, 8, 20))))
    page, told = text(compared), str(compared)
    assert "b resolves 85.0 %, a 81.7 %: +3.3 points (95 % interval " in page
    assert "b alone resolves 11, a alone 9; exact McNemar test: p = 0.82." in page
    assert "b depends on the suite (2 suites; permutation of Cochran's Q, exploratory: p" in page
    assert [(suite.gained, suite.lost) for suite in compared.suites] == [(9, 1), (2, 8)]
    assert compared.interactions[0].p < 0.02
    listed = flip_table(compared, most=3)
    assert listed is not None
    assert (listed.rows[0], listed.notes) == (["b", "gained", "easy", "0"], ["and 17 more"])
    assert [row[1] for row in effect_table(compared).rows] == ["tasks resolved", "tokens"]
    assert told.startswith("b against a depends on the suite")
    assert "on 60 tasks of 2 suites pooled by pairs: +3.3 points resolved" in told
    assert "so no claim is judged" in told
    assert "Pooled effects weigh the suites so: easy 50 %, hard 50 %." in compared.methods


def test_seeds_of_one_task_are_no_independent_tasks() -> None:
    one, five = compare(rows(("s", 6, 1, 20))), compare(rows(("s", 6, 1, 20), seeds=5))
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
    assert "3 of 27 pairs lack a score" in text(compared)


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (pd.DataFrame({"task": [1], "ok": [True]}), r"no column for arm \(arm, system, .*; it has task, ok"),
        (pd.DataFrame(), "the table holds no rows"),
        ([{"task": 1, "arm": "a", "resolved": 1}] * 2, "the table, row 2: task '1' of arm 'a' is in row 1 already"),
        ([{"task": 1, "arm": "a", "resolved": 1}], "a comparison needs two arms; there is only a"),
        (7, "compare takes results, a frame or a list of rows, not int"),
    ],
)
def test_frames_that_cannot_be_compared(frame: Any, told: str) -> None:
    with pytest.raises(StudyError, match=told):
        compare(frame)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FILES / "plain.eval"), f"new={FILES / 'tools.eval'}"]
    assert main(["compare", *files]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "new resolves 83.3 %, scripted/plain 33.3 %: +50.0 points (95 % interval −4.0 to +77.3), on 6"
    )
    assert "new  gained                  sum-1" in out
    assert main(["compare", *files, "--baseline", "new"]) == 0
    assert capsys.readouterr().out.startswith("scripted/plain resolves 33.3 %, new 83.3 %: −50.0 points")
    page = tmp_path / "new" / "page.html"
    assert main(["compare", *files, "--html", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    for words, told in (
        (files[:1], "there is only the arm 'scripted/plain'"),
        ([*files, "--column", "task"], "--column takes NAME=VALUE"),
        ([*files, "--missing", "ignore"], "there is no policy 'ignore'"),
    ):
        assert main(["compare", *words]) == 2
        assert told in capsys.readouterr().err


def test_a_page_holds_the_difference_and_every_task() -> None:
    page = page_of(FILES / "plain.eval", FILES / "tools.eval")
    assert "scripted/tools resolves 83.3 %, scripted/plain 33.3 %: +50.0 points" in page.text
    assert "sum-3" in page.text
    assert all(a.startswith(("#", "data:image/svg+xml;base64,")) for a in page.addresses)
    assert {a[1:] for a in page.addresses if a.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "img" in page.tags


def test_every_kind_of_results_has_its_page() -> None:
    assert "doubles_gen" in page_of(FILES / "lm_eval" / "small", FILES / "lm_eval" / "large").text
    assert "sort-lines, seed 0" in page_of(FILES / "harbor" / "small", FILES / "harbor" / "large").text


def test_what_a_model_wrote_stays_text(tmp_path: Path) -> None:
    evil = "</pre><script>alert(1)</script>"
    for name, right in (("a", 1), ("b", 0)):
        lines = [{"task": task, "arm": f"{name}<i>", "resolved": n} for task, n in ((evil, right), ("t", 1))]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    page = page_of(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (page.tags.count("script"), "i" in page.tags, evil in page.text) == (1, False, True)
