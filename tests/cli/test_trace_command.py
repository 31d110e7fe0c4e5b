"""`rlm-loop trace`: which run of a file is read, what is shown, replayed and forked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_traces import told_tree

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel

GOLDEN = Path(__file__).parent.parent / "golden"
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
def test_a_run_is_named_by_its_id_or_number(file: tuple[str, dict[str, str]], name: str, says: str, line: Any) -> None:
    path, ids = file
    for word, run in (("one", ids["one"]), ("two", "1"), ("six", "-1")):
        code, out, err = line("trace", name, path, "--run", run)
        assert (code, says.format(word) in out, err) == (0, True, ""), out
    code, out, err = line("trace", name, path)
    assert (code, says.format("six") in out) == (0, True)
    assert err.startswith(f"run {ids['six']}, one of 3 in ")
    code, _, err = line("trace", name, path, "--run", "nothing")
    assert (code, [run for run in ids.values() if run not in err]) == (2, [])


def test_what_differs_has_exit_status_1(tmp_path: Path, line: Any) -> None:
    edited = tmp_path / "edited.jsonl"
    text = (GOLDEN / "react_text.jsonl").read_text()
    edited.write_text(text.replace("pig", "cow").replace('\\"fig\\"', '\\"pig\\"', 1))
    code, out, _ = line("trace", "replay", edited)
    assert (code, out.startswith("differs: ")) == (1, True)


def test_a_file_that_is_no_trace_and_one_with_sub_calls(tmp_path: Path, line: Any) -> None:
    (tmp_path / "x.jsonl").write_text('{"event": "run_start", "schema": 99}\n')
    for name in ("x.jsonl", "z.jsonl"):
        code, out, err = line("trace", "replay", tmp_path / name)
        assert (code, out, err[:7], err.count("\n")) == (2, "", "error: ", 1)
    told_tree(tmp_path / "run.jsonl").trace.close()
    assert "20 completions" in line("trace", "show", tmp_path / "run.jsonl")[1]


def test_a_fork_of_a_named_run(file: tuple[str, dict[str, str]], tmp_path: Path, line: Any) -> None:
    path, ids = file
    new = tmp_path / "new.jsonl"
    fork = ("trace", "fork", path, "--at", "1", "--run", ids["two"], "--trace", new, "--model", "local")
    code, out, _ = line(*fork, replies=(CELLS[1].format("new"),))
    assert (code, "answer: 'new'" in out, "turn 2" in out) == (0, True, True)
    start = json.loads(new.read_text().splitlines()[0])
    assert (start["forked"]["run"], start["question"]) == (ids["two"], "The two?")
    assert line("trace", "replay", new)[0] == 0
    code, out, _ = line(*fork, "--max-steps", "1")
    assert (code, "steps" in out) == (1, True)


@pytest.mark.parametrize(
    ("trace", "options", "says"),
    [
        ("tool_loop_sub_agents", ("--model", "local"), "--context"),
        ("lean_text", ("--model", "local"), "stock"),
        ("workspace", ("--model", "local"), "workspace"),
        ("repeated", (), "--model"),  # no model is asked that only the trace names
    ],
)
def test_fork_says_what_is_missing(trace: str, options: tuple[str, ...], says: str, line: Any) -> None:
    code, _, err = line("trace", "fork", GOLDEN / f"{trace}.jsonl", "--at", "1", *options)
    assert (code, says in err) == (2, True)
