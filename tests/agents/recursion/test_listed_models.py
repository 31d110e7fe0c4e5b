"""A cell may name only models that the user listed for the run (semantics 63); a trace names no place (64)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upstream import Answer, Upstream, upstream

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.agents import SubCalls
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.replay import ReplayError, fork
from tests.agents.replies import cell, code


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-the-users-own")
    with upstream(Answer.of("", 500)) as server:
        yield server


@pytest.mark.parametrize("form", ["llm_query('x', model={!r})", "llm_query_batched(['x'], model={!r})"])
@pytest.mark.parametrize("agent", [ToolLoopAgent(), LeanAgent(max_depth=1)], ids=lambda agent: agent.name)
def test_a_cell_cannot_have_the_host_ask_anywhere(agent: Any, elsewhere: Upstream, form: str, tmp_path: Path) -> None:
    asking = f"openai-compatible:m@{elsewhere.url}/v1"
    named = (asking, f"local:{tmp_path / 'file'}", "openai/gpt-5-nano", "ollama/x")
    tries = "\n".join(f"try: print({form.format(name)})\nexcept Exception as e: print(e)" for name in named)
    outcome = replace(agent, model=ScriptedModel([cell(agent, tries), "done"])).run("q", context="text")
    assert outcome.turns[0].observations[0].text.count("may be asked here; there are: scripted") == 4
    assert elsewhere.got == []


def test_models_that_the_user_listed_are_asked_by_the_users_names() -> None:
    small, other = ScriptedModel(["from small"], name="a:1"), ScriptedModel(["from other", "again"], name="b:2")
    cell = "final_answer = [llm_query('x', model=m) for m in (None, 'small', 'b:2', 'scripted')]"
    model = ScriptedModel([code(cell), "from its own"])
    agent = ToolLoopAgent(model=model, subcalls=SubCalls(models={"small": small}, model=other))
    assert agent.run("q").answer == ["from other", "from small", "again", "from its own"]
    assert agent.settings() != ToolLoopAgent(model=model).settings()
    assert "sub_models" not in ToolLoopAgent(model=model).settings()


def test_a_trace_neither_names_an_address_nor_lowers_the_isolation(elsewhere: Upstream, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for name in ("local:/etc/passwd", "model.gguf", f"openai-compatible:m@{elsewhere.url}/v1"):
        made = ScriptedModel([code("x = 1"), code("final_answer = x")], name=name)
        ToolLoopAgent(model=made, repl="plain").run("q", trace=path)
        with pytest.raises(ReplayError, match="give model="):
            fork(path, at=1)
    assert elsewhere.got == []
    outcome = fork(path, at=1, model=ScriptedModel([code("final_answer = x + 1")]))
    assert outcome.answer == 2
    with PythonREPL() as strongest:
        strongest.run("")
        assert outcome.isolation == strongest.isolation
    assert any("repl='plain'" in note for note in outcome.notes)
