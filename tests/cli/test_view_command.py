"""`rlm-loop view`: the address it prints, how it ends, and what it refuses."""

from __future__ import annotations

import signal
import socket
import urllib.request
from pathlib import Path

import pytest
from served_commands import interrupted

from rlm_loop.cli.main import main


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_serve_look_interrupt(tmp_path: Path, number: signal.Signals) -> None:
    def look(address: str) -> None:
        with urllib.request.urlopen(address) as answer:
            assert b"Episodes of" in answer.read()

    assert interrupted(number, look, "view", str(tmp_path), "--port", "0") == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "traces.tar.xz"
    archive.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for argv, words in (
            (["nowhere"], "nowhere"),
            ([str(archive)], "traces.tar.xz"),
            ([str(tmp_path), "--port", port], port),
        ):
            assert main(["view", *argv]) == 2
            assert words in capsys.readouterr().err
