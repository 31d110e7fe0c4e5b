"""rlms (`rlm`): its `LocalREPL`, which runs cells in the host's process, and its loop over a scripted client."""

from __future__ import annotations

from typing import Any

import rlm.core.rlm as core
from host import OutOfReplies, Script, in_their_words, timed
from rlm.clients.base_lm import BaseLM
from rlm.core.types import ModelUsageSummary, UsageSummary
from rlm.environments.local_repl import LocalREPL

from experiments.robustness.suite.case import Played, ReplyCase, Seen
from experiments.robustness.suite.world import Surroundings

FEATURES = frozenset(["variables", "set", "reserved", "answer", "files", "stops", "process", "text answers"])
"""It has no time limit for a cell; `stops` is among the features since a loop without end is the point of those cases.
Answers are text by design (`str(content)`)."""

ANSWER = "answer['content'] = {value}\nanswer['ready'] = True"


RULES = ("__build_class__ not found", "'NoneType' object is not callable", "is not defined")
"""How a cell fails that uses one of the built-ins that it takes away (classes, `exec`, many exceptions)."""


class OfLocalREPL:
    features = FEATURES
    bound = None

    def __init__(self) -> None:
        self.repl = LocalREPL()

    def run(self, code: str, hasty: bool = False) -> Seen:
        return timed(lambda: self._run(code))

    def _run(self, code: str) -> Seen:
        result = self.repl.execute_code(in_their_words(code, ANSWER))
        answer = () if result.final_answer is None else (result.final_answer,)
        # A cell that raises has its error at the end of stderr; anything else there is output.
        raised = result.stderr.rsplit("\n", 1)[-1].partition(":")[0] if result.stderr.strip() else ""
        failed = (raised.isidentifier() and result.stderr.startswith("\n")) or "\nSystemExit" in result.stderr
        refused = bool(failed) and any(words in result.stderr for words in RULES)
        how = "raised" if failed else "none"
        return Seen(result.stdout + result.stderr, how, result.stderr.strip(), answer, refused=refused)

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        if reserved:
            self.repl.load_context(value)
            return
        number = self.repl.add_context(value)
        self.repl.execute_code(f"{name} = context_{number}")

    def new_run(self) -> None: ...

    def close(self) -> None:
        self.repl.cleanup()


def open_subject(place: Surroundings) -> OfLocalREPL:
    return OfLocalREPL()


class ScriptedClient(BaseLM):
    def __init__(self, script: Script) -> None:
        super().__init__("scripted")
        self.script = script

    def completion(self, prompt: Any) -> str:
        last = prompt[-1]["content"] if isinstance(prompt, list) else str(prompt)
        return self.script.next("\n".join(str(m["content"]) for m in prompt[-2:]) if isinstance(prompt, list) else last)

    async def acompletion(self, prompt: Any) -> str:
        return self.completion(prompt)

    def get_usage_summary(self) -> UsageSummary:
        return UsageSummary({"scripted": self.get_last_usage()})

    def get_last_usage(self) -> ModelUsageSummary:
        return ModelUsageSummary(1, 1, 1)


def play(case: ReplyCase) -> Played:
    script = Script(case, ANSWER, "```repl")
    core.get_client = lambda *_: ScriptedClient(script)
    loop = core.RLM(backend="openai", backend_kwargs={"model_name": "scripted"}, max_iterations=len(case.replies) + 1)
    try:
        done = loop.completion("context" if case.context is None else case.context, root_prompt="What is the answer?")
    except OutOfReplies:
        return script.played((), "asked again")
    return script.played((done.response,), "answered")
