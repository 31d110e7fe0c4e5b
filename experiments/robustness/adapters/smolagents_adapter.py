"""smolagents: its `LocalPythonExecutor` as it comes, and `CodeAgent` over a scripted model."""

from __future__ import annotations

from typing import Any

from host import OutOfReplies, Script, in_their_words, timed
from smolagents import ChatMessage, CodeAgent, MessageRole, Model, TokenUsage
from smolagents.local_python_executor import ExecutionTimeoutError, LocalPythonExecutor
from smolagents.monitoring import LogLevel

from experiments.robustness.suite.case import Played, ReplyCase, Seen
from experiments.robustness.suite.world import Surroundings

FEATURES = frozenset(["variables", "set", "answer", "called answer", "echo", "files", "stops", "process"])
ANSWER = "final_answer({value})"
IMPORTS: list[str] = []
TIMEOUT = 1  # whole seconds are what it takes


LIMITS = ("Reached the max number of operations", "iterations in While loop exceeded")
"""A cell that these words end was stopped, by a count and not by the clock."""
RULES = ("is not allowed", "Forbidden ", "is not supported", "Unsupported statement")


class OfExecutor:
    features = FEATURES
    bound = TIMEOUT + 0.5

    def __init__(self, imports: list[str]) -> None:
        self.short = LocalPythonExecutor(imports, timeout_seconds=TIMEOUT)
        self.long = LocalPythonExecutor(imports)  # its default limit
        for executor in (self.short, self.long):
            executor.send_tools({"final_answer": lambda answer: answer})
        self.long.state = self.short.state

    def run(self, code: str, hasty: bool = False) -> Seen:
        return timed(lambda: self._run(self.short if hasty else self.long, in_their_words(code, ANSWER)))

    def _run(self, executor: LocalPythonExecutor, code: str) -> Seen:
        try:
            done = executor(code)
        except ExecutionTimeoutError as error:
            return Seen(str(executor.state.get("_print_outputs", "")), "stopped", str(error))
        except Exception as error:
            said = str(error)
            how = "stopped" if any(words in said for words in LIMITS) else "raised"
            refused = how == "raised" and any(words in said for words in RULES)
            return Seen(f"{executor.state.get('_print_outputs', '')}{said}", how, said, refused=refused)
        if done.is_final_answer:
            return Seen(done.logs, answer=(done.output,))
        return Seen(done.logs or ("" if done.output is None else str(done.output)))

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        self.short.send_variables({name: value})

    def new_run(self) -> None: ...

    def close(self) -> None: ...


def open_subject(place: Surroundings) -> OfExecutor:
    return OfExecutor(IMPORTS)


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
    """Fences are Markdown's: one of the two ways that it offers."""
    script = Script(case, ANSWER)
    agent = CodeAgent(
        [], Scripted(script), max_steps=len(case.replies) + 1, code_block_tags="markdown", verbosity_level=LogLevel.OFF
    )
    given = {} if case.context is None else {"additional_args": {"context": case.context}}
    try:
        done = agent.run("What is the answer?", return_full_result=True, **given)
    except KeyboardInterrupt:
        return script.played((), "asked again")
    output = str(done.output) if isinstance(done.output, str) else done.output  # it comes as a subclass of str
    return script.played((output,) if done.state == "success" else (), "answered")
