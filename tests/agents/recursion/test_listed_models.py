"""A cell may name only models that the user listed for the run (semantics 63); a trace names no place (64)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback import Answering, Loopback

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.agents import SubCalls
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.replay import ReplayError, fork
from tests.agents.replies import cell, code


class Listening(Loopback):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.heard: list[str] = []

    @property
    def model(self) -> str:
        return f"openai-compatible:m@{self.address}/v1"


class _Handler(Answering):
    server: Listening

    def do_POST(self) -> None:
        self.server.heard.append(str(self.headers))
        self.send_error(500)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listening]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-the-users-own")
    with Listening() as server:
        yield server


@pytest.mark.parametrize("form", ["llm_query('x', model={!r})", "llm_query_batched(['x'], model={!r})"])
@pytest.mark.parametrize("agent", [ToolLoopAgent(), LeanAgent(max_depth=1)], ids=lambda agent: agent.name)
def test_a_cell_cannot_have_the_host_ask_anywhere(agent: Any, elsewhere: Listening, form: str, tmp_path: Path) -> None:
    named = (elsewhere.model, f"local:{tmp_path / 'file'}", "openai/gpt-5-nano", "ollama/x")
    tries = "\n".join(f"try: print({form.format(name)})\nexcept Exception as e: print(e)" for name in named)
    outcome = replace(agent, model=ScriptedModel([cell(agent, tries), "done"])).run("q", context="text")
    assert outcome.turns[0].observations[0].text.count("may be asked here; there are: scripted") == 4
    assert elsewhere.heard == []


def test_models_that_the_user_listed_are_asked_by_the_users_names() -> None:
    small, other = ScriptedModel(["from small"], name="a:1"), ScriptedModel(["from other"], name="b:2")
    model = ScriptedModel([code("final_answer = [llm_query('x', model=m) for m in ('small', 'b:2')]")])
    agent = ToolLoopAgent(model=model, subcalls=SubCalls(models={"small": small}, model=other))
    assert agent.run("q").answer == ["from small", "from other"]
    assert agent.settings() != ToolLoopAgent(model=model).settings()
    assert "sub_models" not in ToolLoopAgent(model=model).settings()
    with pytest.raises((TypeError, ValueError), match="list of names"):
        SubCalls(models="small")


def test_a_trace_neither_names_an_address_nor_lowers_the_isolation(elsewhere: Listening, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for name in ("local:/etc/passwd", "model.gguf", elsewhere.model):
        made = ScriptedModel([code("x = 1"), code("final_answer = x")], name=name)
        ToolLoopAgent(model=made, repl="plain").run("q", trace=path)
        with pytest.raises(ReplayError, match="give model="):
            fork(path, at=1)
    assert elsewhere.heard == []
    outcome = fork(path, at=1, model=ScriptedModel([code("final_answer = x + 1")]))
    assert outcome.answer == 2
    with PythonREPL() as strongest:
        strongest.start()
        assert outcome.isolation == strongest.isolation
    assert any("repl='plain'" in note for note in outcome.notes)
