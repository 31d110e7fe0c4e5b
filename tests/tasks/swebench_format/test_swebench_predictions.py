"""Predictions: from outcomes and from studies, in the official form; and the harness's report read back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from made_instances import row, write_rows

from rlm_loop import LeanAgent
from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study, StudyError, load_study, study_predictions, with_report
from rlm_loop.tasks import SuiteFileError, get_suite
from rlm_loop.tasks.swebench import Prediction, Predictions, read_predictions, read_report
from tests.agents.replies import call

DONE = call("final_answer", answer="done")


def mends(replacement: str = "    return a + b") -> list[Any]:
    return [call("apply_edit", path="calc.py", start_line=2, end_line=2, replacement=replacement), DONE]


def agent(*replies: Any) -> LeanAgent:
    return LeanAgent(model=ScriptedModel(list(replies), name="local:scripted"))


@pytest.fixture(scope="module")
def suite(repos: Path, calc: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = [row(calc, f"local__calc-{n}") for n in range(1, 4)]
    return get_suite(f"swebench:{write_rows(tmp_path_factory.mktemp('set') / 'a.jsonl', *rows)}", repos=repos)


@pytest.fixture(scope="module")
def study(suite: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mended, left as it was, crashed; the other arm mends all three."""
    folder = tmp_path_factory.mktemp("study")
    arms = {"lean": agent(*mends(), DONE, RuntimeError("the server is gone")), "other": agent(*mends() * 3)}
    Study("swe", arms, suite).run(folder, progress=False)
    return folder


def test_rows_that_nothing_judged_count_neither_way(study: Path) -> None:
    results = load_study(study)
    for r in (r for r in results.rows if r["task"] == "local__calc-1"):
        assert (r["resolved"], r["value"], "swebench evaluate" in r["score_reason"]) == (None, None, True)
    first, other = results.summary()
    # an empty patch resolves nothing, and neither does a run that crashed
    assert (first.n, first.judged, first.resolved, first.rate) == (3, 2, 0, 0.0)
    assert (other.n, other.judged, other.rate, other.low, other.high) == (3, 0, None, 0.0, 1.0)
    assert (other.wins, other.losses) == (0, 0)


def test_predictions_of_a_study(study: Path, suite: Any) -> None:
    mended, left = study_predictions(study, "lean", name="m").rows
    assert (mended.instance_id, left.instance_id, left.model_patch) == ("local__calc-1", "local__calc-2", "")
    assert study_predictions(study, "lean").left_out["local__calc-3"].startswith("the run crashed: ")
    assert study_predictions(study, "other").rows[0].model_name_or_path == "rlm-loop__other__local_scripted"
    with suite.tasks[0].workspace() as space:  # the patch fits a clean checkout
        space.apply(mended.model_patch)
        assert "return a + b" in (space.root / "calc.py").read_text()


def test_a_choice_of_rows_that_is_not_clear(study: Path) -> None:
    for options, says in (
        ({"arm": "leen"}, "arm='leen'; there are 'lean', 'other'"),
        ({"arm": "lean", "seed": 7}, "seed=7; there are 0"),
        ({"arm": "lean", "suite": "x"}, "suite='x'"),
    ):
        with pytest.raises(StudyError, match=says):
            study_predictions(study, **options)


def test_a_patch_that_the_trace_blanked_out_is_not_handed_on(suite: Any, tmp_path: Path) -> None:
    replies = mends("    return a + b  # sk-abcdefghijklmnopqrstuvwx")
    Study("swe", {"lean": agent(*replies)}, suite.take(["local__calc-1"])).run(tmp_path, progress=False)
    found = study_predictions(tmp_path)
    assert (found.rows, "looks like a key" in found.left_out["local__calc-1"]) == ((), True)


def test_the_official_form_is_written_and_read(tmp_path: Path) -> None:
    rows = (Prediction("a__b-1", "m", "diff é\r\n\x00\n"), Prediction("a__b-2", "m", ""))
    path = Predictions(rows).write(tmp_path / "new" / "p.jsonl")
    assert [json.loads(line) for line in path.read_text("ascii").splitlines()] == [asdict(p) for p in rows]
    assert read_predictions(path) == rows
    with pytest.raises(SuiteFileError, match=r"choose a name that ends in \.jsonl"):
        Predictions(rows).write(tmp_path / "p.txt")


GOOD = '{"instance_id": "a", "model_name_or_path": "m", "model_patch": ""}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD + GOOD, r"p\.jsonl:2: a has a prediction before"),
        ('{"instance_id": "a", "model_name_or_path": "m"}', r"p\.jsonl:1: field 'model_patch' must be a text"),
        ('{"instance_id": "", "model_name_or_path": "m", "model_patch": ""}', "field 'instance_id'"),
        ("\n", "there is no prediction in it"),
    ],
)
def test_bad_predictions_are_named_by_line_and_field(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(text)
    with pytest.raises(SuiteFileError, match=says):
        read_predictions(tmp_path / "p.jsonl")


REPORT: dict[str, Any] = {
    "resolved_ids": ["local__calc-1"],
    "unresolved_ids": ["u"],
    "empty_patch_ids": ["local__calc-2"],
    "error_ids": ["e", "p", "t"],
    "incomplete_ids": ["i"],
    "failure_reasons": {"e": "no image", "u": "disk full"},
    "schema_version": 2,
}
LOGS = {
    "p": ">>>>> Patch Apply Failed:\nerror",
    "t": "a.EvaluationError: Test timed out after 1800 seconds.",
    "e": "x.HTTPError: 500\n",
}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report, and beside it the logs of what the harness could not finish."""
    path = tmp_path / "m.x.run.1.json"
    path.write_text(json.dumps(REPORT))
    for name, said in LOGS.items():
        log = tmp_path / "logs" / "run_evaluation" / "run.1" / "m.x" / name / "run_instance.log"
        log.parent.mkdir(parents=True)
        log.write_text(said)
    return path


def test_a_report_is_read_back(report: Path) -> None:
    found = read_report(report)
    assert [(v.instance_id, v.status, v.resolved) for v in found.verdicts] == [
        ("e", "error", None),
        ("local__calc-1", "resolved", True),
        ("local__calc-2", "empty", False),
        ("p", "error", False),
        ("t", "error", False),
        ("u", "unresolved", False),
    ]
    reasons = [found.verdict(name).reason for name in ("p", "e", "u", "i")]
    assert reasons == [
        "the patch does not apply",
        "no image",
        "disk full",
        "not evaluated: no prediction was submitted",
    ]
    assert found.rate == pytest.approx(1 / 6)
    assert str(found) == "6 submitted: 1 resolved, 1 unresolved, 1 empty, 3 error"
    report.write_text("{")
    with pytest.raises(SuiteFileError, match="is no report of the harness"):
        read_report(report)


def test_verdicts_become_rows(study: Path, report: Path) -> None:
    judged = with_report(load_study(study), read_report(report), "lean")
    told = {(r["arm"], r["task"][-1]): r["resolved"] for r in judged.rows}
    assert [told["lean", number] for number in "123"] == [True, False, False]  # the third crashed, and stays so
    assert told["other", "1"] is None
    assert [arm.rate for arm in judged.summary()] == [1 / 3, None]
    assert load_study(study).rows[0]["resolved"] is None


def test_commands(study: Path, report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "preds.jsonl"
    assert main(["swebench", "predictions", str(study), "--arm", "lean", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "2 predictions, 1 of them empty" in said.out
    assert "left out local__calc-3: the run crashed" in said.err
    assert len(read_predictions(out)) == 2
    assert main(["study", "status", str(study)]) == 0
    assert "4 not judged" in capsys.readouterr().out
    assert main(["swebench", "predictions", str(study), "--out", str(out)]) == 2
    assert capsys.readouterr().err == "error: the study has several arms: lean, other; name one (arm)\n"
