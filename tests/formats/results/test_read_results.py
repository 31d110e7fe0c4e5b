"""Results of other tools and of anybody: what is read, what is said where it cannot be, and what is said of them."""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rlm_loop.cli.main import main
from rlm_loop.formats import load_results
from rlm_loop.report import compare_page
from rlm_loop.study import Comparison, Results, StudyError, compare
from tests.report.parsed_page import Parsed, sound

HERE = Path(__file__).parent
FILES = HERE / "files"
STUDY = HERE.parents[2] / "experiments" / "lean_vs_react" / "results"


def row(loaded: Results, arm: str, task: str, seed: int = 0) -> Any:
    return next(r for r in loaded.rows if (r["arm"], r["task"], r["seed"]) == (arm, task, seed))


def resolved(loaded: Results) -> dict[str, list[Any]]:
    return {arm: [r["resolved"] for r in loaded.rows if r["arm"] == arm] for arm in loaded.arms}


def table(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("first", ["plain.eval", "as_json.json.gz"])
def test_logs_of_inspect(first: str) -> None:
    loaded = load_results(FILES / first, FILES / "tools.eval")
    right, wrong = True, False
    assert resolved(loaded) == {
        "scripted/plain": [right, wrong, wrong, wrong, wrong, right],
        "scripted/tools": [right, right, right, right, wrong, right],
    }
    found = row(loaded, "scripted/tools", "sum-3", 1)
    assert found["input_tokens"] == 40 + 16 + 33, "what was read from a cache is part of it, unlike in Inspect"
    assert (found["suite"], found["output_tokens"], found["steps"], found["cost"]) == ("sums", 16, 2, None)
    assert loaded.notes == ()


Change = Callable[[dict[str, Any]], object]


def changed_log(folder: Path, change: Change) -> Path:
    log = json.loads(gzip.decompress((FILES / "as_json.json.gz").read_bytes()))
    change(log)
    return table(folder, "x.json", json.dumps(log))


def test_what_a_grader_used_is_no_part_of_a_log_s_tokens(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        log["samples"][0]["model_usage"]["judge"] = {"input_tokens": 500, "output_tokens": 50, "total_tokens": 550}
        log["samples"][0]["role_usage"] = {"grader": log["samples"][0]["model_usage"]["judge"]}

    logs = FILES / "plain.eval", changed_log(tmp_path, change)
    before, after = (row(load_results(FILES / "tools.eval", log), "scripted/plain", "sum-0", 1) for log in logs)
    assert before["input_tokens"] == after["input_tokens"] > 0


def test_two_epochs_are_paired_with_one_where_they_can_be() -> None:
    compared = load_results(FILES / "plain.eval", FILES / "epochs.eval").compare()
    assert (compared.contrasts[0].pairs, compared.left_out) == (6, 6)
    both = load_results(f"once={FILES / 'epochs.eval'}", f"again={FILES / 'epochs.eval'}").compare()
    assert (both.contrasts[0].pairs, both.contrasts[0].tasks, both.contrasts[0].clusters) == (12, 6, 6)


def scored(value: str) -> Change:
    return lambda log: log["samples"][2]["scores"]["includes"].update(value=value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda log: log.update(version=3), "x.json is a log of schema 3; this version reads schema 2"),
        (lambda log: log.pop("samples"), "x.json holds no samples"),
        (scored("P"), "x.json: sample 'sum-2', epoch 1: the score 0.5 is neither right nor wrong; give a threshold"),
        (scored("so so"), "x.json: sample 'sum-2', epoch 1: 'so so' is no score"),
    ],
)
def test_a_log_that_cannot_be_read_says_what_and_where(tmp_path: Path, change: Change, told: str) -> None:
    with pytest.raises(StudyError) as error:
        load_results(changed_log(tmp_path, change), FILES / "tools.eval")
    assert str(error.value).startswith(str(tmp_path / told))


def test_what_is_missing_of_a_log_is_noted(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        log["status"] = "cancelled"
        log["samples"][1]["scores"] = {}
        log["samples"][2]["error"] = {"message": "the provider is gone"}
        log["samples"][3]["scores"]["other"] = {"value": 1}

    loaded = load_results(changed_log(tmp_path, change), FILES / "tools.eval")
    assert loaded.notes == (
        "x.json: the evaluation did not come to its end (status cancelled)",
        "x.json: 1 of 6 samples ended with an error, and count as missing",
        "x.json: 1 of 6 samples have no score, and count as missing",
        "x.json: resolved is the score 'includes' of includes, other",
    )
    contrast = loaded.compare().contrasts[0]
    assert (contrast.pairs, contrast.missing, contrast.policy) == (6, 2, "bounds")
    assert row(loaded, "scripted/plain", "sum-2", 1)["input_tokens"] is None
    with pytest.raises(StudyError, match=r"plain\.eval has no score 'other'; it has includes"):
        load_results(FILES / "plain.eval", FILES / "tools.eval", score="other")


def test_an_archive_that_is_cut_off_says_so_and_a_damaged_sample_is_named(tmp_path: Path) -> None:
    whole = (FILES / "plain.eval").read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(b"samples/sum-1_epoch_1.json") + 200] ^= 0xFF
    cases = [(whole[: int(share * len(whole))], " is cut off or damaged") for share in (0.0, 0.5, 0.99)]
    for raw, told in (*cases, (bytes(damaged), r": samples/sum-1_epoch_1\.json is damaged")):
        (tmp_path / "bad.eval").write_bytes(raw)
        with pytest.raises(StudyError, match=rf"bad\.eval{told}"):
            load_results(tmp_path / "bad.eval", FILES / "tools.eval")


def test_logs_that_inspect_writes_today(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    command = [sys.executable, str(HERE / "write_inspect.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    wanted = resolved(load_results(FILES / "plain.eval", FILES / "tools.eval"))
    (as_json,) = (tmp_path / "as_json").glob("*.json")
    for log in (tmp_path / "plain", as_json):
        assert resolved(load_results(log, tmp_path / "tools")) == wanted
    assert len(load_results(tmp_path / "plain", tmp_path / "epochs").rows) == 18
    failing = load_results(tmp_path / "failing", tmp_path / "tools", score="includes")
    assert "1 of 6 samples ended with an error" in failing.notes[0]


# -- lm-evaluation-harness


def samples(name: str) -> Path:
    return next((FILES / "lm_eval" / name).glob("samples_doubles_gen_*"))


@pytest.mark.parametrize(
    ("score", "small"),
    [
        (None, [0, 5, 6, 7, 8, 9] * 2),
        ("flexible-extract", [*range(10)]),
        ("exact_match,strict-match", [0, 5, 6, 7, 8, 9]),
    ],
)
def test_samples_of_lm_evaluation_harness(score: str | None, small: list[int]) -> None:
    read = (lambda name: FILES / "lm_eval" / name) if score is None else samples
    loaded = load_results(*(f"{name}={read(name)}" for name in ("small", "large")), score=score)
    assert loaded.arms == ["small", "large"]
    assert [int(r["task"]) for r in loaded.rows if r["arm"] == "small" and r["resolved"]] == small


def test_samples_say_which_metric_counts_and_which_documents_are_others(tmp_path: Path) -> None:
    small, large = samples("small"), samples("large")
    note = "resolved is exact_match,strict-match (metrics exact_match; filters strict-match, flexible-extract)"
    assert load_results(small, large).notes == (f"doubles_gen: {note}",)
    with pytest.raises(StudyError, match="has no score 'f1'; it has exact_match; filters strict-match, flexible-ex"):
        load_results(small, large, score="f1")
    first, *others = small.read_text("utf-8").splitlines()
    without = json.dumps({k: v for k, v in json.loads(first).items() if k != "exact_match"})
    short = table(tmp_path, "samples_doubles_gen.jsonl", "\n".join([without, *others]))
    assert row(load_results(f"short={short}", large), "short", "0")["resolved"] is None
    with pytest.raises(StudyError, match=r"task '0' .*is in .*samples_twice\.jsonl and in "):
        load_results(table(tmp_path, "samples_twice.jsonl", f"{first}\n{first}\n"), large)


def test_samples_that_lm_evaluation_harness_writes_today(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    offline = {**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    for name, wrong in (("small", "1+2+3+4"), ("large", "3+7")):
        options = ["--model", "scripted", "--model_args", f"wrong={wrong}", "--include_path", "lm_eval_tasks"]
        options += ["--tasks", "doubles_mc,doubles_gen", "--log_samples", "--output_path", str(tmp_path / name)]
        command = [sys.executable, "write_lm_eval.py", "run", *options]
        subprocess.run(command, check=True, capture_output=True, cwd=HERE, env=offline)
    now = load_results(tmp_path / "small", tmp_path / "large")
    assert resolved(now) == resolved(load_results(FILES / "lm_eval" / "small", FILES / "lm_eval" / "large"))


def test_jobs_of_harbor() -> None:
    loaded = load_results(FILES / "harbor" / "small", FILES / "harbor" / "large")
    assert loaded.arms == ["terminus small", "terminus large"]
    assert resolved(loaded)["terminus small"] == [False, True, False, None]
    found = row(loaded, "terminus small", "sort-lines", 1)
    measured = [found[name] for name in ("suite", "input_tokens", "output_tokens", "cost")]
    assert measured == ["made-up", 950, 60, 0.01]
    assert loaded.notes == ("small: 1 of 4 trials have no reward, and count as missing",)
    assert "sort-lines, seed 0" in page_of(loaded.compare())
    one = load_results(FILES / "harbor")  # a folder of jobs
    assert (one.arms, len(one.rows)) == (["terminus large", "terminus small"], 8)


def test_a_study_of_ours() -> None:
    loaded = load_results(STUDY)
    assert (loaded.arms, len(loaded.rows)) == (["code", "lean", "lean+nudge", "react-native", "react-text"], 180)
    assert len(load_results(f"{STUDY}", f"{STUDY.parent}/../lean_vs_react/results").arms) == 10


# -- tables


def records(*names: str) -> list[dict[str, Any]]:
    values = [("a", "x", 1.0, 10), ("a", "y", 0, 20), ("b", "x", False, None), ("b", "y", True, 40)]
    return [dict(zip(names, record, strict=True)) for record in values]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "task,arm,resolved,tokens\na,x,1,10\na,y,0,20\nb,x,false,\nb,y,True,40\n"),
        ("t.csv", "Instance ID;System;Passed;Total tokens\na;x;pass;10\na;y;fail;20\nb;x;no;\nb;y;yes;40\n"),
        ("t.tsv", "task_id\tmodel\tcorrect\ttotal_tokens\na\tx\tC\t10\na\ty\tI\t20\nb\tx\t0.0\tnan\nb\ty\t1.0\t40\n"),
        ("t.jsonl", "\n".join(map(json.dumps, records("id", "agent", "score", "n_tokens")))),
    ],
)
def test_columns_are_found_by_their_spelling(tmp_path: Path, name: str, text: str) -> None:
    loaded = load_results(table(tmp_path, name, text))
    assert resolved(loaded) == {"x": [True, False], "y": [False, True]}
    assert [r["tokens"] for r in loaded.rows] == [10, 20, None, 40]
    assert loaded.by_arm()["rate"].tolist() == [0.5, 0.5]


#: A file that cannot be read, its text, and how the error goes on after the file's name.
UNREADABLE = [
    ("t.csv", "task,arm,ok\na,x,1\n", " has no column for resolved ("),
    ("t.csv", "task,arm,resolved\na,x,1\na,x,0\n", ", line 3: task 'a' of arm 'x' is there already; a column seed"),
    ("t.csv", "task,arm,score\na,x,1\na,y,0.4\n", ", line 3, score: the score '0.4' is neither right nor wrong; give"),
    ("t.csv", "task,arm,score\na,x,good\n", ", line 2, score: 'good' is no score (true, false, 1, 0, or a number)"),
    ("t.csv", "task,arm,resolved,tokens\na,x,1,-3\n", ", line 2, tokens: '-3' is no amount"),
    ("t.csv", "task,arm,resolved\na,x,1,9\n", ", line 2: more cells than columns"),
    ("t.csv", "task,arm,resolved\n,x,1\n", ", line 2: there is no task"),
    ("t.csv", "task,arm,resolved\n", " holds no rows"),
    ("t.jsonl", '{"task": 1}\n{"task": \n', ", line 2, is no JSON"),
    ("t.jsonl", "[1]\n", ", line 1, is no JSON object"),
    ("t.json", "{}", " is no kind of results that is known"),
    ("t.traj.json", '{"info": {}, "trajectory_format": "mini-swe-agent-1"}', " is a transcript of mini-swe-agent"),
    ("t.jsonl", '{"type": "summary"}\n{"type": "user", "sessionId": "x"}', " is a transcript of Claude Code"),
    ("t.txt", "", " is no kind of results that is known"),
]


@pytest.mark.parametrize(("name", "text", "told"), UNREADABLE)
def test_a_file_that_cannot_be_read_says_what_and_where(tmp_path: Path, name: str, text: str, told: str) -> None:
    with pytest.raises(StudyError) as error:
        load_results(table(tmp_path, name, text))
    assert str(error.value).startswith(str(tmp_path / name) + told)


def test_names_are_anybodys_and_what_says_no_error_is_none(tmp_path: Path) -> None:
    errors = {"none": "False", "t1": "0", "t2": "no", "t3": "", "t4": "None", "t5": "Timeout"}
    lines = [f"{task},{arm},1,{error}" for arm in ("NA", "none") for task, error in errors.items()]
    found = load_results(table(tmp_path, "t.csv", "\n".join(["task,arm,resolved,error", *lines])))
    assert found.arms == ["NA", "none"]
    told = {r["task"]: r["error"] for r in found.rows if r["arm"] == "NA"}
    assert told == dict.fromkeys(errors) | {"t5": "Timeout"}


def test_how_arms_are_called(tmp_path: Path) -> None:
    before = table(tmp_path, "before/r.csv", "task,resolved\na,1\n")
    after = table(tmp_path, "after/r.csv", "task,resolved\na,0\n")
    both = table(tmp_path, "both.csv", "task,arm,resolved\na,x,1\na,y,1\n")
    copy = table(tmp_path, "copy.csv", both.read_text(encoding="utf-8"))
    other = table(tmp_path, "other.csv", "task,resolved,seed\na,1,7\n")
    for paths, arms in (
        ((before, after), ["before", "after"]),
        ((f"old={before}", after), ["old", "after"]),
        ((both, after), ["x", "y", "r"]),
        ((both, copy), ["both/x", "both/y", "copy/x", "copy/y"]),
    ):
        assert load_results(*paths).arms == arms
    for paths, told in (
        ((f"n={both}", before), r"the file has 2 arms \(x, y\), so it takes no name"),
        ((before,), "there is only the arm 'r'; a comparison needs two"),
        ((tmp_path / "nothing.csv",), r"there is no .*nothing\.csv"),
        ((f"old={before}", other), r"no suite, task and seed was tried by all arms: old has .*'a', 0"),
    ):
        with pytest.raises(StudyError, match=told):
            load_results(*paths)


def test_other_models_are_other_arms(tmp_path: Path) -> None:
    a = table(tmp_path, "a.csv", "task,model_name,suite,resolved,system\nt,m1,s,1,x\nu,m1,s,1,x\n")
    b = table(tmp_path, "b.csv", "task,model_name,suite,resolved,system\nt,m2,s,0,y\nu,m2,s,1,y\n")
    found = load_results(a, b)
    assert (found.arms, found.models, {r["suite"] for r in found.rows}) == (["x", "y"], [""], {"s"})
    assert found.compare().contrasts[0].pairs == 2


def test_reports_of_swe_bench_and_parquet(tmp_path: Path) -> None:
    kinds = ("resolved", "unresolved", "error", "empty_patch", "incomplete")
    report = {f"{kind}_ids": [name] for kind, name in zip(kinds, "abcde", strict=True)}
    one = table(tmp_path, "one.run.json", json.dumps({**report, "submitted_ids": [*"abcd"], "schema_version": 2}))
    two = table(tmp_path, "two/eval_results.json", json.dumps({"a": True, "b": True, "c": False}))
    loaded = load_results(one, f"two={two}")
    assert resolved(loaded) == {"one": [True, False, None, False], "two": [True, True, False]}
    assert loaded.notes == ("one.run.json: the harness met an error in 1 of 4 instances, which count as missing",)
    pytest.importorskip("pyarrow")
    rows = [{"task": task, "arm": arm, "resolved": True} for task in "ab" for arm in "xy"]
    pd.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    assert resolved(load_results(tmp_path / "t.parquet")) == {"x": [True, True], "y": [True, True]}


def test_damaged_reports_and_tables_are_named(tmp_path: Path) -> None:
    other = table(tmp_path, "b.csv", "task,resolved\na,1\n")
    report = table(tmp_path, "a.json", json.dumps({"resolved_ids": ["a"], "unresolved_ids": "b"}))
    with pytest.raises(StudyError, match=r"a.json is no report of the harness"):
        load_results(report, other)
    pytest.importorskip("pyarrow")
    with pytest.raises(StudyError, match=r"a.parquet is no Parquet table"):
        load_results(table(tmp_path, "a.parquet", "task"), other)


def test_named_columns_and_a_threshold(tmp_path: Path) -> None:
    path = table(tmp_path, "t.csv", "what,who,points\na,x,0.6\na,y,0.4\n")
    columns = {"task": "what", "arm": "who", "resolved": "points"}
    assert [r["resolved"] for r in load_results(path, columns=columns, threshold=0.5).rows] == [True, False]
    for wrong, told in (
        ({**columns, "task": "wha"}, r"t\.csv has no column 'wha'; it has what, who, points"),
        ({"tsk": "what"}, "there is no column 'tsk' to name; there are task, arm"),
    ):
        with pytest.raises(StudyError, match=told):
            load_results(path, columns=wrong)


# -- what is said of them, and its page


def rows(*suites: tuple[str, int, int, int], seeds: int = 1) -> list[Any]:
    """Of each suite how many tasks are gained, lost, and alike."""
    found: list[Any] = []
    for suite, gained, lost, alike in suites:
        outcomes = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * alike
        for n, both in enumerate(outcomes):
            for arm, right in zip(("a", "b"), both, strict=True):
                for seed in range(seeds):
                    found.append({"task": n, "suite": suite, "arm": arm, "resolved": right, "seed": seed, "tokens": 7})
    return found


def page_of(compared: Comparison) -> str:
    return " ".join(Parsed(compare_page(compared)).text.split())


def test_seeds_of_one_task_are_no_independent_tasks() -> None:
    one, five = compare(rows(("s", 6, 1, 20))), compare(rows(("s", 6, 1, 20), seeds=5))
    assert five.contrasts[0].p_difference == one.contrasts[0].p_difference
    assert "on 27 tasks (135 pairs of task and seed)" in page_of(five)
    assert "pairs are clustered by task" in page_of(five)


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (pd.DataFrame({"task": [1], "ok": [True]}), r"no column for arm \(arm, system, .*; it has task, ok"),
        (pd.DataFrame(), "the table holds no rows"),
        ([{"task": 1, "arm": "a", "resolved": 1}] * 2, "the table, row 2: task '1' of arm 'a' is there already"),
        ([{"task": 1, "arm": "a", "resolved": 1}], "a comparison needs two arms; there is only a"),
        (7, "compare takes results, a frame or a list of rows, not int"),
        (pd.DataFrame([{"task": math.nan, "arm": "x", "resolved": 1}], dtype=object), "there is no task"),
        (pd.DataFrame([{"task": "a", "arm": "x", "resolved": 1, "tokens": 10**400}], dtype=object), "is no amount"),
    ],
)
def test_frames_that_cannot_be_compared(frame: Any, told: str) -> None:
    with pytest.raises(StudyError, match=told):
        compare(frame)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FILES / "plain.eval"), f"new={FILES / 'tools.eval'}"]
    assert main(["compare", *files]) == 0
    out = capsys.readouterr().out
    said = "new against scripted/plain, on 6 tasks: +50.0 points resolved (95 % interval -4.0 to 77.3)"
    assert out.startswith(said)
    assert "new  gained                  sum-1" in out
    assert main(["compare", *files, "--baseline", "new"]) == 0
    assert capsys.readouterr().out.startswith("scripted/plain against new, on 6 tasks: -50.0 points resolved")
    page = tmp_path / "new" / "page.html"
    assert main(["compare", *files, "--html", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    shown = sound(page.read_text(encoding="utf-8"))
    assert (said in shown.text, "sum-3" in shown.text, bool(shown.all("img"))) == (True, True, True)
    for words, told in (
        (files[:1], "there is only the arm 'scripted/plain'"),
        ([*files, "--column", "task"], "--column takes NAME=VALUE"),
    ):
        assert main(["compare", *words]) == 2
        assert told in capsys.readouterr().err


def test_what_a_model_wrote_stays_text(tmp_path: Path) -> None:
    evil = "</pre><script>alert(1)</script>"
    for name, right in (("a", 1), ("b", 0)):
        lines = [{"task": task, "arm": f"{name}<i>", "resolved": n} for task, n in ((evil, right), ("t", 1))]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    page = sound(compare_page(load_results(tmp_path / "a.jsonl", tmp_path / "b.jsonl").compare()))
    assert (page.all("i"), evil in page.text) == ([], True)
