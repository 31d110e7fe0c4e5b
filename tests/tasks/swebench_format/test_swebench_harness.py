"""The hand-off to the official harness: what it is given, what it says, and its own verdicts beside ours."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from made_instances import fake_row, row, write_rows

from rlm_loop.cli.main import main
from rlm_loop.tasks import Attempt, SuiteFileError, get_suite
from rlm_loop.tasks.swebench import HarnessError, Prediction, Predictions, evaluate_predictions, read_report

INSTALLED = any(d.metadata["Name"] == "swebench" for d in importlib.metadata.distributions())
OFFICIAL = pytest.mark.skipif(not INSTALLED, reason='pip install -e ".[swebench]"')
SCRIPT = """#!/bin/bash
set -uxo pipefail
cd /testbed
git apply - <<'EOF_TESTS'
{tests}EOF_TESTS
: '>>>>> Start Test Output'
{python} -m pytest -rA -p no:cacheprovider tests/test_calc.py
: '>>>>> End Test Output'
"""


def whole(calc: Path, name: str) -> dict[str, Any]:
    """A row with the columns that the harness needs."""
    given = row(calc, name)
    script = SCRIPT.format(tests=given["test_patch"], python=sys.executable)
    more = {"image": "calc:latest", "eval_script": script, "log_parser": "parse_log_pytest"}
    return {**given, **more, "eval_type": "pass_and_fail"}


@OFFICIAL
def test_the_official_code_reads_our_files_and_agrees_with_our_verdicts(repos: Any, calc: Any, tmp_path: Path) -> None:
    rows = [whole(calc, f"local__calc-{n}") for n in range(1, 5)]
    dataset = write_rows(tmp_path / "instances.jsonl", *rows)
    right = rows[0]["patch"]
    patches = (right, right.replace("a + b", "a * b"), "")
    suite = get_suite(f"swebench:{dataset}", repos=repos, python=sys.executable)
    predictions = tuple(Prediction(t.id, "m/x", p) for t, p in zip(suite, patches, strict=False))
    file = Predictions(predictions).write(tmp_path / "preds.jsonl")
    (tmp_path / "testbed").mkdir()
    with ExitStack() as opened:
        for task, patch in zip(suite, patches, strict=False):
            space = opened.enter_context(task.workspace())
            space.apply(patch)
            (tmp_path / "testbed" / task.id).symlink_to(space.root)
        argv = [sys.executable, str(Path(__file__).with_name("official.py")), str(dataset), str(file)]
        done = subprocess.run([*argv, str(tmp_path / "testbed"), "run.1"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["read"], said["instances"]) == ([asdict(p) for p in predictions], 4)
    theirs = read_report(tmp_path / said["report"])
    ours = {t.id: t.judge(Attempt(artifact=p)).resolved for t, p in zip(suite, patches, strict=False)}
    assert {v.instance_id: v.resolved for v in theirs.verdicts} == ours
    for number, status in enumerate(("resolved", "unresolved", "empty", "not submitted"), 1):
        assert theirs.verdict(f"local__calc-{number}").status == status
    tests = said["graded"]["local__calc-2"]["local__calc-2"]["tests_status"]
    assert tests["FAIL_TO_PASS"]["failure"] == ["tests/test_calc.py::test_two"]


@OFFICIAL
def test_what_the_harness_is_run_with(calc: Path, tmp_path: Path) -> None:
    dataset = write_rows(tmp_path / "a.jsonl", whole(calc, "local__calc-1"), whole(calc, "local__calc-2"))
    file = Predictions((Prediction("local__calc-1", "m/x", "diff"),)).write(tmp_path / "p.jsonl")
    seen: list[Sequence[str]] = []

    def run(argv: Sequence[str], folder: Path) -> int:
        seen.append(argv)
        lists = {f"{name}_ids": [] for name in ("resolved", "unresolved", "empty_patch")}
        (folder / "m__x.try.json").write_text(json.dumps({**lists, "error_ids": ["local__calc-1"]}))
        return 0

    options: dict[str, Any] = {"folder": tmp_path / "out", "run_id": "try"}
    report = evaluate_predictions(file, str(dataset), run=run, workers=2, **options)
    assert report.verdict("local__calc-1").status == "error"
    (argv,) = seen
    assert argv[:3] == [sys.executable, "-m", "swebench.harness.run_evaluation"]
    given = dict(zip(argv[3::2], argv[4::2], strict=True))
    assert (given["--instance_ids"], given["--max_workers"]) == ("local__calc-1", "2")
    (sent,) = Path(given["--dataset_name"]).read_text().splitlines()  # only what there is a prediction for
    assert json.loads(sent)["instance_id"] == "local__calc-1"
    with pytest.raises(HarnessError, match=r"wrote no report .*m__x\.try\.json \(exit code 3\)"):
        evaluate_predictions(file, str(dataset), run=lambda *_: 3, **options)  # the old report is not taken for it
    evaluate_predictions(file, "lite", run=run, **options)
    assert seen[-1][4] == "SWE-bench/SWE-bench_Lite"


@OFFICIAL
@pytest.mark.parametrize(
    ("models", "options", "error", "says"),
    [
        ({"a": "m"}, {}, SuiteFileError, "no instance 'a'"),
        ({"django__django-1": "m", "django__django-2": "n"}, {}, HarnessError, "predictions of m, n; give one model"),
        ({"django__django-1": "m"}, {"run_id": "a/b"}, HarnessError, "a run id is made of"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(
    models: dict[str, str], options: dict[str, Any], error: Any, says: str, tmp_path: Path
) -> None:
    dataset = write_rows(tmp_path / "a.jsonl", fake_row(1), fake_row(2))
    file = Predictions(tuple(Prediction(i, m, "diff") for i, m in models.items())).write(tmp_path / "p.jsonl")
    with pytest.raises(error, match=says):
        evaluate_predictions(file, str(dataset), folder=tmp_path, **options)


def test_the_command_says_what_is_missing(calc: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    dataset = write_rows(tmp_path / "a.jsonl", whole(calc, "local__calc-1"))
    file = Predictions((Prediction("local__calc-1", "m", "diff"),)).write(tmp_path / "p.jsonl")
    words = ["swebench", "evaluate", str(file), "--dataset", str(dataset)]
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert ("error: no container engine answers (" if INSTALLED else 'pip install -e ".[swebench]"') in said
    assert said.count("\n") == 1
