"""`rlm-loop meter`: the address it prints, the table that Ctrl-C prints, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from wires import ask, user  # pyright: ignore

from rlm_loop.cli.main import main
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel

REPLIES = '"Hello."\n\n{"text": "", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}\n'


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_serve_ask_interrupt(tmp_path: Path, number: signal.Signals) -> None:
    script, out = tmp_path / "replies.jsonl", tmp_path / "out"
    script.write_text(REPLIES)
    argv = ["meter", "--replies", str(script), "--port", "0", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "rlm_loop.cli.main", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "120", "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/v1", process.stderr.readline())
        assert address is not None
        assert ask(address[0], user("A question?")).json()["choices"][0]["message"]["content"] == "Hello."
        second = ask(address[0], user("A question?"), user("More"), logprobs=True).json()["choices"][0]["message"]
        assert second["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert ask(address[0], user(7)).status_code == 400
        process.send_signal(number)
        shown, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert "default turn 1: 10 tokens in, 2 out" in said
    assert "not applied: logprobs" in said
    assert "refused with 400" in said
    assert re.search(r"task +3 +3 +6 +24.0% +50.0%", shown)
    assert re.search(r"default +2 +1 +", shown)
    assert (out / "default.jsonl").is_file()


def test_tables_of_recorded_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with metered_endpoint(ScriptedModel(["Hello."]), out=tmp_path) as url:
        ask(url, user("A question?"))
    assert main(["meter", "--show", str(tmp_path)]) == 0
    assert re.search(r"task +3 +3 +30.0% +0.0%", capsys.readouterr().out)
    assert main(["meter", "--show", str(tmp_path), "--json"]) == 0
    total = json.loads(capsys.readouterr().out)
    assert total["by_cause"] == {"template": {"tokens": 7, "resent": 0}, "task": {"tokens": 3, "resent": 0}}
    assert total["usage"]["input_tokens"] == total["tree"]["total"] == 10
    assert [one["name"] for one in total["tree"]["children"][0]["children"]] == ["template", "task"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--replies", "none.jsonl"], "cannot read the replies none.jsonl"),
        (["--replies", "a", "--recorded", "b"], "use one"),
        (["--recorded", "none.jsonl"], "cannot read the trace"),
        (["--show", "nowhere"], "cannot read the trace"),
        (["--model", "no-such-model"], "no model is called"),
    ],
)
def test_what_it_refuses(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["meter", *argv]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("line", ["{", "7", '{"tool_calls": [{}]}', '{"tool_calls": 3}'])
def test_replies_that_are_none(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "replies.jsonl"
    script.write_text(f'"fine"\n{line}\n')
    assert main(["meter", "--replies", str(script)]) == 2
    assert "line 2 of the replies is no reply" in capsys.readouterr().err


def test_a_taken_port_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "replies.jsonl"
    script.write_text(REPLIES)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["meter", "--replies", str(script), "--port", str(port)]) == 2
    assert f"127.0.0.1:{port}" in capsys.readouterr().err
