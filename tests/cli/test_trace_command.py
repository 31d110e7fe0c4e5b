"""`rlm-loop trace`: which run of a file is read, what is shown, replayed and forked."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from made_traces import Told

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel

GOLDEN = Path(__file__).parent.parent / "golden"
Line = Callable[..., tuple[int, str, str]]
CELLS = ["```python\nprint('{0}')\n```", "```python\nfinal_answer = '{0}'\n```"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A trace of three runs, `one` tried again, and their ids."""
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    ids: dict[str, str] = {}
    for word in ("one", "two", "six"):
        model = ScriptedModel([cell.format(word) for cell in CELLS], name=f"model-{word}")
        ids[word] = ToolLoopAgent(model=model).run(f"The {word}?", trace=path).run
        if word == "one":
            again = {"run": ids[word], "event": "aborted", "at": 0, "reason": "tried again"}
            path.write_text(path.read_text() + json.dumps(again) + "\n")
    return str(path), ids


@pytest.mark.parametrize(("name", "says"), [("show", "answer: '{0}'"), ("replay", "same: 2 of 2 requests")])
def test_a_run_is_named_by_its_id_or_number(file: tuple[str, dict[str, str]], name: str, says: str, line: Line) -> None:
    path, ids = file
    for word, run in (("one", ids["one"]), ("two", "1"), ("six", "-1")):
        code, out, err = line("trace", name, path, "--run", run)
        assert (code, says.format(word) in out, err) == (0, True, ""), out
    code, out, err = line("trace", name, path)
    assert (code, says.format("six") in out) == (0, True)
    assert err.startswith(f"run {ids['six']}, one of 3 in ")
    code, _, err = line("trace", name, path, "--run", "nothing")
    assert code == 2
    assert all(run in err for run in ids.values())


def test_a_fork_of_a_named_run(file: tuple[str, dict[str, str]], tmp_path: Path, line: Line) -> None:
    path, ids = file
    words = ("--at", "1", "--run", ids["two"], "--trace", tmp_path / "fork.jsonl", "--model", "local")
    code, out, _ = line("trace", "fork", path, *words, replies=(CELLS[1].format("new"),))
    assert (code, "answer: 'new'" in out) == (0, True)
    start = json.loads((tmp_path / "fork.jsonl").read_text().splitlines()[0])
    assert (start["forked"]["run"], start["question"]) == (ids["two"], "The two?")


def test_a_file_of_strangers_cannot_steer_the_terminal(tmp_path: Path, line: Line) -> None:
    path = tmp_path / "run.jsonl"
    start = {"run": "\x1b[2Jr1", "event": "run_start", "schema": 5, "at": 1e14, "agent": {"a": 1}}
    path.write_text(json.dumps({**start, "task": "\x1b]0;x\x07"}) + "\n")
    code, out, err = line("trace", "show", path, "--run", "\x1bx")
    assert (code, "\x1b" in out + err) == (2, False)


TEXT = "".join(f"record {i:04d} holds the value {i * 7919 % 10007:05d} for its owner\n" for i in range(1000))


@pytest.fixture
def trace(tmp_path: Path) -> str:
    told = Told(tmp_path / "run.jsonl", context=TEXT)
    told.turn("print(context[:480])", TEXT[:480])
    told.batch([f"count: {TEXT[i * 2400 : i * 2400 + 2400]}" for i in range(20)], ["3"] * 20)
    told.turn("n = 0\nfinal_answer = n", answer=60)
    told.end(60)
    told.trace.close()
    (tmp_path / "context.txt").write_text(TEXT, encoding="utf-8", newline="")
    return str(tmp_path / "run.jsonl")


def test_show_has_the_tree_where_there_are_sub_calls(trace: str, line: Line) -> None:
    assert "20 completions" in line("trace", "show", trace)[1]


def edited(tmp_path: Path) -> Path:
    path = tmp_path / "edited.jsonl"
    path.write_text(
        (GOLDEN / "react_text.jsonl").read_text().replace("pig", "cow").replace('\\"fig\\"', '\\"pig\\"', 1)
    )
    return path


def test_the_same_run(line: Line) -> None:
    code, out, err = line("trace", "replay", GOLDEN / "react_text.jsonl")
    assert (code, out, err) == (0, "same: 4 of 4 requests equal byte for byte, 4 turns\n", "")


def test_a_run_that_differs_has_exit_status_1(tmp_path: Path, line: Line) -> None:
    code, out, _ = line("trace", "replay", edited(tmp_path))
    assert code == 1
    assert out.startswith("differs: ")


def test_several_traces_and_archives(tmp_path: Path, line: Line) -> None:
    with tarfile.open(tmp_path / "traces.tar.xz", "w:xz") as tar:
        tar.add(GOLDEN / "direct.jsonl", "traces/direct.jsonl")
        tar.add(edited(tmp_path), "traces/edited.jsonl")
    code, out, _ = line("trace", "replay", tmp_path / "traces.tar.xz", GOLDEN / "repeated.jsonl")
    lines = out.splitlines()
    assert code == 1
    assert lines[0].startswith("traces/edited.jsonl: differs: ")
    assert lines[-1] == "2 of 3 runs are the same"


def test_a_file_that_is_no_trace(tmp_path: Path, line: Line) -> None:
    (tmp_path / "x.jsonl").write_text('{"event": "run_start", "schema": 99}\n')
    (tmp_path / "y.tar.gz").write_text("no archive")
    for name in ("x.jsonl", "y.tar.gz", "z.jsonl"):
        code, out, err = line("trace", "replay", tmp_path / name)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1


def test_fork(tmp_path: Path, line: Line) -> None:
    new = tmp_path / "new.jsonl"
    fork = ("trace", "fork", GOLDEN / "repeated.jsonl", "--at", "1", "--trace", new, "--model", "local")
    code, out, _ = line(*fork, replies=("```python\nfinal_answer = x + 41\n```",))
    assert (code, "answer: 42" in out, "turn 2" in out) == (0, True, True)
    assert line("trace", "replay", new)[0] == 0
    code, out, _ = line(*fork, "--max-steps", "1")
    assert (code, "steps" in out) == (1, True)


@pytest.mark.parametrize(
    ("trace", "options", "says"),
    [
        ("tool_loop_sub_agents", ("--model", "local"), "--context"),
        ("lean_text", ("--model", "local"), "stock"),
        ("workspace", ("--model", "local"), "worked in a workspace"),
        ("repeated", (), "--model"),  # no model is asked that only the trace names
    ],
)
def test_fork_says_what_is_missing(trace: str, options: tuple[str, ...], says: str, line: Line) -> None:
    code, _, err = line("trace", "fork", GOLDEN / f"{trace}.jsonl", "--at", "1", *options)
    assert (code, says in err) == (2, True)
