"""smolagents: its `LocalPythonExecutor` as it comes, and `CodeAgent` over a scripted model.

It counts operations besides looking at the clock; a cell that the count ends was stopped.
"""

from __future__ import annotations

from typing import Any

from smolagents import ChatMessage, CodeAgent, MessageRole, Model, TokenUsage
from smolagents.local_python_executor import ExecutionTimeoutError, LocalPythonExecutor
from smolagents.monitoring import LogLevel
from suite.case import Played, ReplyCase, Seen
from suite.kinds import Kind
from suite.peers import OutOfReplies, Script, Subject, in_their_words

FEATURES = ("variables", "set", "answer", "called-answer", "echo", "files", "stops", "process")
ANSWER = "final_answer({value})"
TIMEOUT = 1  # whole seconds are accepted
LIMITS = ("Reached the max number of operations", "iterations in While loop exceeded")
RULES = ("is not allowed", "Forbidden ", "is not supported", "Unsupported statement")


class OfExecutor(Subject):
    def __init__(self) -> None:
        self.short = LocalPythonExecutor([], timeout_seconds=TIMEOUT)
        self.long = LocalPythonExecutor([])  # its default limit
        for executor in (self.short, self.long):
            executor.send_tools({"final_answer": lambda answer: answer})
        self.long.state = self.short.state

    def _run(self, code: str, hasty: bool) -> Seen:
        executor = self.short if hasty else self.long
        try:
            done = executor(in_their_words(code, ANSWER))
        except ExecutionTimeoutError as error:
            return Seen(str(executor.state.get("_print_outputs", "")), "stopped", str(error))
        except Exception as error:
            text = str(error)
            how = "stopped" if any(words in text for words in LIMITS) else "raised"
            refused = how == "raised" and any(words in text for words in RULES)
            return Seen(f"{executor.state.get('_print_outputs', '')}{text}", how, text, refused=refused)
        if done.is_final_answer:
            return Seen(done.logs, answer=(done.output,))
        return Seen(done.logs or ("" if done.output is None else str(done.output)))

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        self.short.send_variables({name: value})


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        super().__init__(model_id="scripted")
        self.script = script

    def generate(self, messages: Any, stop_sequences: list[str] | None = None, **_: Any) -> ChatMessage:
        try:
            text = self.script.next("\n".join(str(m.content) for m in messages[-2:]))
        except OutOfReplies as out:
            raise KeyboardInterrupt from out  # the agent would take an Exception for one more step
        return ChatMessage(role=MessageRole.ASSISTANT, content=text, token_usage=TokenUsage(1, 1))


def play(case: ReplyCase) -> Played:
    script, most = Script(case, ANSWER), len(case.replies) + 1
    fences = {"code_block_tags": "markdown"}  # one of the two ways that it offers
    agent = CodeAgent([], Scripted(script), max_steps=most, verbosity_level=LogLevel.OFF, **fences)
    given = {} if case.context is None else {"additional_args": {"context": case.context}}
    try:
        done = agent.run("What is the answer?", return_full_result=True, **given)
    except KeyboardInterrupt:
        return script.played((), "asked again")
    output = str(done.output) if isinstance(done.output, str) else done.output  # it comes as a subclass of str
    return script.played((output,) if done.state == "success" else (), "answered")


KIND = Kind("smolagents", frozenset(FEATURES), OfExecutor, play, TIMEOUT + 0.5)
