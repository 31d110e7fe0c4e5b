"""Recursion: `llm_query` is a tool whose body is a model call, or the loop again; the loop knows nothing of it.

The root is depth 0.  A query made at depth d runs at depth d + 1: as an agent with a REPL of its own while
d + 1 < max_depth, as one plain completion where d + 1 == max_depth, and beyond that as `on_depth` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rlm_loop.messages import Prompt
from rlm_loop.models.base import Model, ModelError
from rlm_loop.models.metered import Metered
from rlm_loop.outcome import Outcome
from rlm_loop.tools import Tool, ToolError

OnDepth = Literal["error", "flat", "text"]

HELP = "Ask a fresh model, which sees only this prompt."
FALLBACK = "(not asked: the depth limit is reached)"


def llm_query_tool(
    model: Metered,
    *,
    max_depth: int,
    on_depth: OnDepth,
    sub_model: Model | None,
    sub_agent: Callable[[str, Metered], Outcome],
) -> Tool:
    """The tool for an agent that runs on `model` (its depth is the model's).

    `sub_agent` runs the loop one level down; `sub_model` answers instead of the agent's own model.  What fails in a
    sub-call is raised in the cell; an error message is never returned as if it were an answer.
    """
    below = model.depth + 1

    def llm_query(prompt: str, max_tokens: int | None = None) -> str:
        if not prompt.strip():
            raise ToolError("invalid_arguments", "the prompt of llm_query is empty")
        if below > max_depth and on_depth != "flat":
            model.trace.record("depth_exceeded", depth=below, policy=on_depth)
            if on_depth == "text":
                return FALLBACK
            raise ToolError("denied", f"DepthExceeded: llm_query may not go deeper than max_depth={max_depth}")
        inner = model.scoped(depth=below, purpose="llm_query", model=sub_model, max_tokens=max_tokens)
        try:
            if below < max_depth:
                return str(sub_agent(prompt, inner).answer)
            return inner.complete(Prompt.ask(prompt)).text
        except ModelError as error:
            raise ToolError("runtime", f"SubCallError: {error}") from error

    return Tool("llm_query", HELP, llm_query, timeout=float("inf"))
