"""`rlm-loop doctor`: it looks at the real machine, so the tests compare it with what else is known of it."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import pytest
from loopback import Answering, Loopback

from rlm_loop.cli import machine
from rlm_loop.cli.main import main
from rlm_loop.repl import PythonREPL, Sandbox


def test_the_tables_name_every_kind_and_what_is_missing_and_tell_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    said = ("plain", "hardened", "sandbox", "container", "isolation.md", 'launcher="auto" means')
    assert [part for part in said if part not in out] == []
    missing = [f for f in (*machine.isolation(), *machine.surroundings(), machine.on_this_machine()) if not f.there]
    assert all(f.how and f"{f.name}: {f.how}" in out for f in missing)
    with PythonREPL(launcher="auto", timeout=60) as repl:
        repl.get("0")
        assert f"means {repl.isolation} here" in out
    there = {f.name: f.there for f in (*machine.isolation(), *machine.surroundings())}
    assert (there["plain"], there["sandbox"]) == (True, Sandbox().problem(sys.executable) == "")
    assert there["git"] is (shutil.which("git") is not None)


def test_the_default_model_and_keys_are_named_and_keys_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (machine.default_model().there, machine.default_model().found) == (True, "not set: local is taken")
    monkeypatch.setenv("RLM_LOOP_MODEL", "nonsense")
    found = machine.default_model()
    assert (found.there, found.found) == (False, "names nonsense, which is no model")
    assert [machine.keys(empty).there for empty in ({}, {"OPENAI_API_KEY": " "})] == [False, False]
    found = machine.keys({"GROQ_API_KEY": "gsk-mine", "OPENAI_API_KEY": "sk-mine"})
    assert (found.there, found.found) == (True, "GROQ_API_KEY, OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("body", "there", "part"),
    [
        ({"models": [{"name": f"m{n}"} for n in range(2)]}, True, "ollama/m0, ollama/m1"),
        ({"models": []}, True, "has no models: ollama pull NAME"),
        ("not JSON", False, "no server answers at http://127.0.0.1:"),
    ],
)
def test_a_server_of_ollama(body: Any, there: bool, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Handler(Answering):
        def do_GET(self) -> None:
            self.answer(200, body if self.path == "/api/tags" else {})

    with Loopback(Handler) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address.removeprefix("http://"))
        found = machine.ollama()
    assert (found.there, part in found.found) == (there, True)
    assert not machine.ollama().there  # the server has gone
