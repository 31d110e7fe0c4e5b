"""Small arms for tests of studies: their loop is trivial, but budget, ledger and trace are the real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting import Account, Budget, Ledger
from rlm_loop.actions import Answer, FinalAnswer, Malformed, Observation
from rlm_loop.agents.meter import Meter
from rlm_loop.messages import Message, Prompt, Reply, Span, Usage, say
from rlm_loop.models import Model, ModelError
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.study import Results
from rlm_loop.tasks import Attempt, Score, Suite, Task
from rlm_loop.traces import Trace


@dataclass
class Echo(Model):
    """A model that says the last word of the question.  A word of the prompt is ten tokens, half of them cached."""

    name: str = "echo"

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        words = 10 * sum(len(m.text.split()) for m in prompt.messages)
        return Reply(prompt.messages[0].text.split()[-1], usage=Usage(words, 1, words // 2, cost=0.001), seconds=0.25)


@dataclass(frozen=True)
class Arm:
    """Answers with the last word of the question after `turns` calls; `before` may crash or stop a task."""

    name: str = "arm"
    turns: int = 2
    wrong: tuple[str, ...] = ()
    before: Callable[[Task], None] | None = None
    after_one_call: Exception | None = None
    model: Any = "echo"
    seed: int | None = None
    base_url: str = "here"
    system: str = ""
    log: list[tuple[str, str]] = field(default_factory=list, compare=False)

    def settings(self) -> dict[str, Any]:
        prompt = {"system": self.system}
        return {"agent": "Arm", "turns": self.turns, "prompt": prompt, "base_url": self.base_url, "seed": self.seed}

    def attempt(self, task: Task, *, trace: Any = None) -> Outcome:
        self.log.append((self.name, task.id))
        if self.before is not None:
            self.before(task)
        ledger, turns, prompt = Ledger(), list[Turn](), Prompt((say("user", task.question, "task"),))
        with Trace(trace) as record:
            metered = Meter(Echo(), Account(Budget()), ledger, record)
            record.start(task=task.id, agent=self.name)
            for index in range(1, self.turns + 1):
                reply = metered.complete(prompt, turn=index)
                last = index == self.turns
                given = FinalAnswer("wrong" if task.id in self.wrong else reply.text)
                action = Answer(reply.text) if last else Malformed("say it again")
                turns.append(Turn(index, reply, (action,), (Observation(answer=given if last else None),)))
                scaffold = Message("user", (Span("think now", "scaffold:thought"),), turn=index)
                prompt += (say("assistant", reply.text, "assistant", turn=index), scaffold)
                if self.after_one_call is not None:
                    self.after_one_call.outcome = self._outcome(None, Stop.FAILED, turns, ledger)
                    raise self.after_one_call
            outcome = self._outcome(turns[-1].answer, Stop.ANSWERED, turns, ledger)
            record.record("run_end", stop=outcome.stop, answer=outcome.answer)
        return outcome

    def _outcome(self, given: FinalAnswer | None, stop: Stop, turns: Sequence[Turn], ledger: Ledger) -> Outcome:
        value = None if given is None else given.value
        return Outcome(value, stop, tuple(turns), ledger.usage, ledger, seconds=1.5 * len(turns), working_seconds=1.0)


def task(name: str, truth: str = "", **more: Any) -> Task:
    truth = truth or f"answer-{name}"

    def score(attempt: Attempt) -> Score:
        return Score(attempt.answer == truth, float(attempt.answer == truth), f"expected {truth}")

    return Task(name, f"Please repeat {truth}", score, **more)


def suite(name: str, n: int) -> Suite:
    return Suite(name, tuple(task(f"{name}-{i}") for i in range(1, n + 1)))


TIMES = ("seconds", "working_seconds", "model_seconds", "harness_seconds", "tool_seconds")


def told(results: Results, *times: str) -> list[dict[str, Any]]:
    """The rows without what differs from run to run."""
    left_out = {"started", "trace_run", *times}
    return [{name: value for name, value in row.items() if name not in left_out} for row in results.rows]


def unreachable() -> ModelError:
    return ModelError("the server is gone\nand a second line")
