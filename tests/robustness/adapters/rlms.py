"""rlms (`rlm`): its `LocalREPL`, which runs cells in the host's process, and its loop over a scripted client."""

from __future__ import annotations

from typing import Any

import rlm.core.rlm as core
from rlm.clients.base_lm import BaseLM
from rlm.core.types import ModelUsageSummary, UsageSummary
from rlm.environments.local_repl import LocalREPL
from suite.case import Played, ReplyCase, Seen
from suite.kinds import TEXT_ANSWERS, Kind
from suite.peers import OutOfReplies, Script, Subject, in_their_words

#: It has no time limit for a cell; "stops" is a feature since an endless loop is the point of those cases.
FEATURES = ("variables", "set", "reserved", "answer", "files", "stops", "process", TEXT_ANSWERS)
ANSWER = "answer['content'] = {value}\nanswer['ready'] = True"
#: Errors of a cell that uses a built-in that it takes away (classes, `exec`, many exceptions).
RULES = ("__build_class__ not found", "'NoneType' object is not callable", "is not defined")


class OfLocalREPL(Subject):
    def __init__(self) -> None:
        self.repl = LocalREPL()
        self.close = self.repl.cleanup

    def _run(self, code: str, hasty: bool) -> Seen:
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
        else:
            number = self.repl.add_context(value)
            self.repl.execute_code(f"{name} = context_{number}")


class ScriptedClient(BaseLM):
    def __init__(self, script: Script) -> None:
        super().__init__("scripted")
        self.script = script

    def completion(self, prompt: Any) -> str:
        messages = prompt[-2:] if isinstance(prompt, list) else [{"content": prompt}]
        return self.script.next("\n".join(str(message["content"]) for message in messages))

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


KIND = Kind("rlms", frozenset(FEATURES), OfLocalREPL, play)
