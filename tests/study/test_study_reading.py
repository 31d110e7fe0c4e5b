"""Statistics, summary, a part of results, export, verification and loading."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite, unreachable

from rlm_loop.study import Results, Study, StudyError, export, load_study, load_study_file, read_trace, verify_traces
from rlm_loop.study.statistics import mean, percentile, ratio, total
from rlm_loop.tasks import Task
from rlm_loop.traces import TraceError


def recorded(folder: Path) -> Results:
    def gone(task: Task) -> None:
        if task.id == "b-2":
            raise unreachable()

    arms = {
        "one": Arm("one", 1, wrong=("a-1", "a-2")),
        "two": Arm("two", 2, wrong=("a-2",)),
        "four": Arm("four", 4, wrong=("a-3", "b-1"), before=gone),
    }
    Study("mine", arms, [suite("a", 3), suite("b", 2)]).run(folder, False)
    return load_study(folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return recorded(tmp_path_factory.mktemp("study"))


def test_what_is_not_known_is_not_zero() -> None:
    assert mean([1, None]) is percentile([1, None], 95) is total([1, None]) is None
    assert ratio(1, None) is ratio(None, 1) is ratio(1, 0) is mean([]) is None
    assert (percentile([10, 20, 30], 50), percentile([0, 10], 95)) == (20, pytest.approx(9.5))


def test_only_tasks_that_every_arm_was_tried_on_are_compared(results: Results) -> None:
    assert (len(results), len(results.crashed), results.left_out, len(results.complete_pairs)) == (15, 1, 0, 15)
    found = {s.arm: s for s in results.summary()}
    counts = {a: (s.n, s.judged, s.measured, s.resolved, s.wins, s.losses) for a, s in found.items()}
    assert counts == {"one": (5, 5, 5, 3, 0, 0), "two": (5, 5, 5, 4, 1, 0), "four": (5, 5, 4, 2, 2, 3)}
    assert {s.arm: (s.wins, s.losses) for s in results.summary("two")}["four"] == (1, 3)
    two, four = found["two"], found["four"]
    assert (two.input_tokens, two.output_tokens, two.total_tokens, two.steps, two.seconds) == (90, 2, 92, 2, 3.0)
    rows = [r for r in results.complete_pairs if r["arm"] == "four" and r["error"] is None]
    share = sum(r["scaffold_tokens"] for r in rows) / sum(r["input_tokens"] for r in rows)
    assert 0 < share == pytest.approx(four.scaffold_share)
    assert (two.malformed, four.malformed, four.failed_actions) == (0.5, 0.75, None)  # nothing was performed: no rate


def test_frames(results: Results) -> None:
    assert len(results.frame()) == 15
    assert results.by_arm().loc["two", "resolved"] == 4
    by_suite = {(s.suite, s.arm): s.n for s in results.suite_summary()}
    assert by_suite == {(suite, arm): n for suite, n in (("a", 3), ("b", 2)) for arm in ("one", "two", "four")}
    assert "recorded run of 15 episodes" in results._repr_html_()


# -- a part of results


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({}, 15),
        ({"suite": "a", "arm": "one"}, 3),
        ({"suite": ["a", "b"], "task": {"b-1"}}, 3),
        ({"resolved": False}, 6),
        ({"task": ("a-1",), "resolved": True}, 2),
    ],
    ids=str,
)
def test_filter_keeps_the_rows_that_have_it(results: Results, wanted: Any, count: int) -> None:
    found = results.filter(**wanted)
    assert (type(found), len(found), found.name) == (Results, count, results.name)
    assert (found.lock, found.folder, found.recorded) == (results.lock, results.folder, True)
    for name, value in wanted.items():
        assert all(row[name] in (value if isinstance(value, (list, set, tuple)) else [value]) for row in found.rows)


def test_some_of_the_arms(results: Results) -> None:
    some = results.only("four", "one")
    assert some.arms == ["one", "four"]
    assert list(some.rows) == [r for r in results.rows if r["arm"] != "two"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (lambda found: found.filter(arms="one"), "no column 'arms'; did you mean 'arm'"),
        (lambda found: found.filter(arm="three"), "no episode has arm='three'"),
        (lambda found: found.filter(suite=["a", "c"]), "no episode has suite='c'; there are 'a', 'b'"),
        (lambda found: found.only(), "there is no arm .*; there are one, two, four"),
        (lambda found: found.only("one", "five"), "there is no arm five; there are one, two, four"),
        (lambda found: found.by_arm("five"), "there is no arm 'five'; there are one, two, four"),
    ],
)
def test_what_is_not_there_is_named(results: Results, part: Callable[[Results], Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        part(results)


# -- folders and files


def test_an_export_reads_like_the_folder_and_is_deterministic(results: Results, tmp_path: Path) -> None:
    files, again = export(results.folder, tmp_path / "one"), export(results.folder, tmp_path / "two")
    assert [f.name for f in files] == ["study.json", "results.jsonl.gz", "traces.tar.xz", "contract.json"]
    assert [f.read_bytes() for f in files] == [f.read_bytes() for f in again]
    copy = load_study(tmp_path / "one")
    assert (list(copy.rows), copy.lock) == (list(results.rows), results.lock)
    assert copy.trace(copy.rows[0]) == results.trace(results.rows[0])
    assert verify_traces(tmp_path / "one") == []
    with pytest.raises(TraceError, match="cannot read the trace"):
        read_trace(tmp_path / "one", "traces/nothing.jsonl")
    for target in (tmp_path / "one" / "study.json" / "x", tmp_path / "one" / "results.jsonl.gz"):
        with pytest.raises(StudyError, match="choose another folder"):
            export(results.folder, target)
    with pytest.raises(StudyError, match="no such folder"):
        export(tmp_path / "nothing", tmp_path / "three")
    assert len(recorded(tmp_path / "two")) == len(load_study(tmp_path / "two")) == len(results)  # it goes on
    assert (tmp_path / "two" / "results.jsonl").read_bytes().count(b"\n") == 16


def test_a_link_that_leads_out_of_a_folder_is_not_packed(tmp_path: Path) -> None:
    results = recorded(tmp_path / "study")
    (tmp_path / "id_rsa").write_text("private")
    first = tmp_path / "study" / results.rows[0]["trace"]
    first.unlink()
    first.symlink_to(tmp_path / "id_rsa")
    export(tmp_path / "study", tmp_path / "packed")
    assert read_trace(tmp_path / "packed", results.rows[1]["trace"]).events
    with pytest.raises(TraceError):
        read_trace(tmp_path / "packed", results.rows[0]["trace"])


def test_traces_are_checked_against_rows(tmp_path: Path) -> None:
    recorded(tmp_path)
    assert verify_traces(tmp_path) == []
    folder = tmp_path / "traces" / "echo"
    trace = folder / "two" / "a--a-1--0.jsonl"
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    reply = next(e for e in events if e["event"] == "reply")
    reply["charged"] |= {"exact": True, "parts": {"kept": 0, "new": [["task", 0, 0, 31]]}}
    (folder / "one" / "a--a-1--0.jsonl").unlink()
    trace.write_text("\n".join(json.dumps(e) for e in events if e["event"] != "run_end") + "\n")
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    for row in rows[1:]:
        if (row["arm"], row["task"]) == ("four", "b-1"):
            row.update(calls=3, input_tokens=7, steps=2)
    (tmp_path / "results.jsonl").write_text("\n".join(json.dumps(r) for r in rows) + "\n")
    said = [
        "one/a--a-1--0.jsonl: cannot read the trace",
        "two/a--a-1--0.jsonl: the run has no end",
        "two/a--a-1--0.jsonl: call 1: 31 tokens were counted, the model reported 30",
        "four/b--b-1--0.jsonl: calls: the row says 3, the trace 4",
        "four/b--b-1--0.jsonl: 4 turns have replies, the row says 2",
        "four/b--b-1--0.jsonl: input_tokens: the row says 7, the trace 300",
    ]
    problems = verify_traces(tmp_path)
    assert (len(problems), [part for part in said if part not in "\n".join(problems)]) == (6, [])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("study.json", b"{", "damaged"),
        ("study.json", b"\xff\xfe", "cannot read"),
        ("results.jsonl.gz", b"not compressed", "cannot read"),
        ("results.jsonl.gz", gzip.compress(b"x" * 500, mtime=0)[:20], "cannot read"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / "study.json").write_text('{"schema": 1, "name": "x"}')
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudyError, match=message) as refused:
        load_study(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no experiment"),
        ("x = 1", "no function study"),
        ("import nothing_like_it", "cannot be imported"),
        ("def study(): return 3", "returned int"),
        ("def study(:", "cannot be imported"),
    ],
)
def test_a_file_that_is_no_experiment(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "study.py").write_text(text)
    with pytest.raises(StudyError, match=message) as refused:
        load_study_file(tmp_path / "study.py")
    assert "\n" not in str(refused.value)


def test_rows_of_the_first_version_call_their_suites_by_split(tmp_path: Path) -> None:
    Study("mine", {"a": Arm()}, suite("t/test", 1)).run(tmp_path, False)
    file = tmp_path / "results.jsonl"
    file.write_text(file.read_text().replace('"t/test"', '"t/held"'))
    assert load_study(tmp_path).rows[0]["suite"] == "t/test"
