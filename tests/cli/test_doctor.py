"""`rlm-loop doctor`: it looks at the real machine, so the tests compare it with what else is known of it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback import Answering, Loopback

from rlm_loop.cli import machine
from rlm_loop.cli.main import main
from rlm_loop.repl import PythonREPL, Sandbox


def test_the_tables_name_every_kind_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    said = ("plain", "hardened", "sandbox", "container", "isolation.md", 'launcher="auto" means')
    assert [part for part in said if part not in out] == []
    missing = [f for f in (*machine.isolation(), *machine.surroundings(), *machine.on_this_machine()) if not f.there]
    assert all(f.how and f"{f.name}: {f.how}" in out for f in missing)
    with PythonREPL(launcher="auto", timeout=60) as repl:
        repl.start()
        assert f"means {repl.isolation} here" in out


def test_it_tells_the_truth() -> None:
    there = {f.name: f.there for f in (*machine.isolation(), *machine.surroundings())}
    assert (there["plain"], there["sandbox"]) == (True, Sandbox().problem(sys.executable) == "")
    assert there["git"] is (shutil.which("git") is not None)
    assert {"hardened", "container"} <= set(there)


@pytest.mark.parametrize(
    ("named", "there", "part"),
    [
        (None, True, "not set: local is taken"),
        ("ollama/qwen3", True, "names ollama/qwen3"),
        ("nonsense", False, "names nonsense, which is no model"),
    ],
)
def test_the_default_model(named: str | None, there: bool, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if named is not None:
        monkeypatch.setenv("RLM_LOOP_MODEL", named)
    found = machine.default_model()
    assert (found.name, found.there, found.found) == ("RLM_LOOP_MODEL", there, part)
    assert there or "nonsense" in found.how


@pytest.mark.parametrize(
    ("body", "there", "part"),
    [
        (
            {"models": [{"name": f"m{n}"} for n in range(5)]},
            True,
            "ollama/m0, ollama/m1, ollama/m2, ollama/m3 and 1 more",
        ),
        ({"models": []}, True, "has no models: ollama pull NAME"),
        ("not JSON", False, "no server answers at http://127.0.0.1:"),
        (None, False, "no server answers at http://127.0.0.1:"),
    ],
)
def test_a_server_of_ollama(body: Any, there: bool, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Handler(Answering):
        def do_GET(self) -> None:
            self.answer(200, body if self.path == "/api/tags" else {})

    with Loopback(Handler) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address.removeprefix("http://"))
        found = machine.ollama()
    if body is None:  # the server has gone
        found = machine.ollama()
    assert (found.there, part in found.found) == (there, True)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, [("keys", False)]),
        ({"OPENAI_API_KEY": " "}, [("keys", False)]),
        ({"GROQ_API_KEY": "gsk-mine", "OPENAI_API_KEY": "sk-mine"}, [("OPENAI_API_KEY", True), ("GROQ_API_KEY", True)]),
    ],
    ids=str,
)
def test_keys_are_named_and_never_shown(environment: dict[str, str], said: list[Any]) -> None:
    found = machine.by_key(environment)
    assert [(f.name, f.there) for f in found] == said
    assert "mine" not in str(found)


@pytest.mark.parametrize(
    ("settings", "there", "part"),
    [
        ({}, False, "none"),
        ({"user/max_user_namespaces": "100\n"}, True, "open"),
        ({"user/max_user_namespaces": "0\n"}, False, "max_user_namespaces is 0"),
        ({"user/max_user_namespaces": "1", "kernel/apparmor_restrict_unprivileged_userns": "1"}, False, "apparmor"),
    ],
)
def test_user_namespaces_can_be_switched_off_in_several_ways(
    tmp_path: Path, settings: dict[str, str], there: bool, part: str
) -> None:
    for name, value in settings.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(value)
    finding = machine.user_namespaces(tmp_path)
    assert (finding.there, part in finding.found, there or bool(finding.how)) == (there, True, True)
