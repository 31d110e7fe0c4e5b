"""`rlm-loop meter`: the address it prints, the table that Ctrl-C prints, and what it refuses."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest
from served_commands import interrupted
from wires import ask, user

from rlm_loop.cli.main import main
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel

CALL = ToolCall("c1", "add", '{"a": 1}')


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_serve_ask_interrupt(tmp_path: Path, number: signal.Signals) -> None:
    def look(address: str) -> None:
        assert ask(address, user("A question?")).json()["choices"][0]["message"]["content"] == "Hello."
        second = ask(address, user("A question?"), user("More")).json()["choices"][0]["message"]
        assert second["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert ask(address, user(7)).status_code == 400

    with metered_endpoint(ScriptedModel(["Hello.", Reply("", (CALL,), "tool_calls")])) as url:
        options = ("--forward", url.root, "--port", "0", "--out", str(tmp_path / "out"))
        code, shown, said = interrupted(number, look, "meter", *options)
    assert code == 0
    assert "default turn 1: 10 tokens in, 2 out" in said
    assert "refused with 400" in said
    assert re.search(r"task +3 +3 +6 +24.0% +50.0%", shown)
    assert re.search(r"default +2 +1 +", shown)
    assert (tmp_path / "out" / "default.jsonl").is_file()


def test_tables_of_recorded_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with metered_endpoint(ScriptedModel(["Hello."]), out=tmp_path) as url:
        ask(url, user("A question?"))
    assert main(["meter", "--show", str(tmp_path)]) == 0
    assert re.search(r"task +3 +3 +30.0% +0.0%", capsys.readouterr().out)


def test_a_taken_port_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["meter", "--forward", "http://127.0.0.1:1", "--port", str(port)]) == 2
    assert f"127.0.0.1:{port}" in capsys.readouterr().err
