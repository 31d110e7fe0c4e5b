"""The four strategies.  They differ in the dialect that they speak and the injectors around it, and in nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rlm_loop.agents.agent import Agent
from rlm_loop.agents.rules import SubCalls
from rlm_loop.dialects.base import Dialect, Direct
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.dialects.function_calls import FunctionCalls, Presentation
from rlm_loop.dialects.injectors import Initiator, Injected, Injector, ThoughtPrompt
from rlm_loop.dialects.react import ReActText
from rlm_loop.dialects.wording import CALLS_RULE_WITHOUT_FINAL
from rlm_loop.models import weights
from rlm_loop.models.base import Model


@dataclass(frozen=True)
class ToolLoopAgent(Agent):
    """The code-block loop: runs the fenced Python blocks of a reply in a persistent REPL.

    The answer is the variable `final_answer`, or a reply without a code block.
    """

    def _speaks(self) -> Dialect:
        return CodeBlocks(may_block=self.rules.may_block, **self._words("rule"))


@dataclass(frozen=True)
class LeanAgent(Agent):
    """The lean function-calling loop: adds nothing per turn.

    `presentation` says how tools are shown: `native` schemas, a `text` list, or a text list with replies
    `constrained` by a JSON schema.  `None` takes what works with the model: text for a local one, else native.

    Without `answer_tool` there is no tool `final_answer`: only a reply that calls nothing is the answer.  That saves
    its schema in every call; a model that ends with prose then has no way to give a value.

    Sub-calls are offered only where they were asked for (`max_depth=1`).
    """

    subcalls: SubCalls = field(default_factory=lambda: SubCalls(depth=0))
    presentation: Presentation | None = None
    answer_tool: bool = True

    def _speaks(self) -> Dialect:
        shown = self.presentation or default_presentation(self.model)
        words: dict[str, Any] = self._words("rule", "native_rule")
        if not self.answer_tool:
            words = {"rule": CALLS_RULE_WITHOUT_FINAL} | words
        return FunctionCalls(shown, may_block=self.rules.may_block, **words)


@dataclass(frozen=True)
class ReActAgent(Agent):
    """ReAct, in one of its two forms.

    `text`: one template with Thought / Action / Observation lines.  `calls`: an initiator once and a thought prompt
    every turn over tool calls (then `presentation` as in `LeanAgent`); `scaffold` are injectors in place of these two.
    Only finishing ends either, as in mellea and inspect: a reply that is text alone is thinking aloud.

    Sub-calls are offered only where they were asked for (`max_depth=1`).
    """

    subcalls: SubCalls = field(default_factory=lambda: SubCalls(depth=0))
    form: Literal["text", "calls"] = "text"
    presentation: Presentation | None = None
    scaffold: tuple[Injector, ...] | None = None

    def _speaks(self) -> Dialect:
        if self.form == "text":
            return ReActText(may_block=self.rules.may_block, **self._words("rule"))
        shown = self.presentation or default_presentation(self.model)
        words = self._words("rule")
        calls = FunctionCalls(shown, text_answers=False, may_block=self.rules.may_block, **words)
        return Injected(calls, (Initiator(), ThoughtPrompt()) if self.scaffold is None else self.scaffold)


@dataclass(frozen=True)
class DirectAgent(Agent):
    """No loop: the question with its material inlined, and the first reply is the answer.

    `window` is how many characters of the context are shown, head and tail; what is left out is said.
    """

    window: int = 12_000

    def _speaks(self) -> Dialect:
        return Direct(may_block=self.rules.may_block, **self._words("rule"))


def default_presentation(model: str | Model) -> Presentation:
    """Small local models do not make native tool calls; hosted ones do."""
    name = model if isinstance(model, str) else model.name
    return "text" if name.split(":")[0] == "local" or weights.find(name) is not None else "native"
