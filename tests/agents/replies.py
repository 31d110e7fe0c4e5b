"""Replies of scripted models, in the form that an agent reads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent, tool
from rlm_loop.agents import Agent, Interrupted
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, ModelError, Reply, ToolCall, Usage
from rlm_loop.tools import Tool

LOCAL = "local:scripted"  #: A model of this name is told of tools in text.

main_only = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)

#: What breaks a run off, the error that its caller gets, and the stop of its outcome.
broken_off = pytest.mark.parametrize(
    ("breaks", "error", "stop"),
    [
        (lambda _: ModelError("gone"), ModelError, "failed"),
        (lambda _: OSError("disk"), OSError, "failed"),
        (KeyboardInterrupt, Interrupted, "interrupted"),
    ],
)


def code(*cells: str) -> str:
    return "\n".join(f"```python\n{cell}\n```" for cell in cells)


def calls(*named: tuple[str, Any]) -> Reply:
    """Native calls, each a name and its arguments: a dictionary, or a text as it is."""
    texts = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in named]
    return Reply("", tuple(ToolCall(f"c{n}", *one) for n, one in enumerate(texts)), "tool_calls")


def call(name: str, /, **arguments: Any) -> Reply:
    return calls((name, arguments))


def written(name: str, /, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def react(name: str, /, **arguments: Any) -> str:
    return f"Thought: on.\nAction: {name}\nAction Input: {json.dumps(arguments)}"


def cell(agent: Agent, text: str) -> Any:
    """A cell, as the model of that agent has it run."""
    if isinstance(agent, ToolLoopAgent):
        return code(text)
    return react("python", code=text) if writes_actions(agent) else call("python", code=text)


def final(agent: Agent, value: Any) -> Any:
    """An answer, as the model of that agent gives it."""
    if isinstance(agent, ToolLoopAgent):
        return code(f"final_answer = {value!r}")
    return react("finish", answer=value) if writes_actions(agent) else call("final_answer", answer=value)


def writes_actions(agent: Agent) -> bool:
    return getattr(agent, "form", "") == "text"


def named(name: str, function: Callable[..., Any], **options: Any) -> Tool:
    """A tool of a function without a docstring."""
    return tool(function, name=name, description="Do it.", **options)


class Uncounted(Model):
    """A model that reports its prompt tokens and cannot count them beforehand, as most providers."""

    def __init__(self, inner: Model) -> None:
        self.name, self._inner = inner.name, inner

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        return self._inner.complete(prompt, max_tokens=max_tokens)


class Held(Model):
    """A model that says that it was asked, and replies when it is told to."""

    name = "held"

    def __init__(self, reply: str = "too late") -> None:
        self.reply = reply
        self.asked, self.go, self.replied = threading.Event(), threading.Event(), threading.Event()

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        self.asked.set()
        assert self.go.wait(300)
        self.replied.set()
        return Reply(self.reply, usage=Usage(5, 1))
