from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from rlm_loop import LeanAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, ModelError, Reply, RetryPolicy, ToolCall, Usage


def failing(*errors: ModelError) -> Mock:
    return Mock(side_effect=[*errors, "done"])


def transient(after: float | None = None) -> ModelError:
    error = ModelError("busy", retryable=True)
    error.retry_after = after
    return error


def test_waits_double_and_are_counted(waits: Any) -> None:
    seen, sleep = waits
    retry = RetryPolicy(first=1.0, longest=3.0, sleep=sleep, clock=lambda: 0.0, chance=lambda: 0.0)
    assert retry.call(failing(*[transient() for _ in range(4)])) == ("done", 9.0)
    assert seen == [1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("errors", "attempts"),
    [
        ([ModelError("final")], 1),
        ([transient() for _ in range(9)], 3),
        ([transient(1000.0)], 1),  # longer than anyone waits: say so at once
    ],
)
def test_when_to_give_up(errors: list[ModelError], attempts: int) -> None:
    attempt = failing(*errors)
    with pytest.raises(ModelError):
        RetryPolicy(attempts=3, sleep=lambda _: None).call(attempt)
    assert attempt.call_count == attempts


class Busy(Model):
    """A model of a user's own that is busy before it answers."""

    name = "busy"

    def __init__(self, *errors: ModelError, retry: RetryPolicy | None) -> None:
        self.loop_retry = retry
        self.asked = 0
        self._errors = list(errors)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        self.asked += 1
        if self._errors:
            raise self._errors.pop(0)
        return Reply("", (ToolCall("1", "final_answer", '{"answer": 42}'),), usage=Usage(10, 5))


def test_a_run_asks_a_users_own_model_again() -> None:
    seen: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        seen.append(seconds)
        clock[0] += seconds

    retry = RetryPolicy(first=1.0, sleep=sleep, clock=lambda: clock[0], chance=lambda: 0.0)
    model = Busy(transient(), transient(after=5.0), retry=retry)
    outcome = LeanAgent(model=model).run("What is 6 times 7?")
    assert (outcome.answer, model.asked, seen) == (42, 3, [1.0, 5.0])
    (call,) = outcome.ledger.calls  # one call, which took its waits
    assert (call.waited, call.seconds) == (6.0, 6.0)
    assert outcome.working_seconds < outcome.seconds


@pytest.mark.parametrize(("error", "own"), [(ModelError("final"), True), (transient(), False)])
def test_nor_is_it_asked_again_in_vain(error: ModelError, own: bool) -> None:
    model = Busy(error, retry=RetryPolicy(sleep=lambda _: None) if own else None)
    with pytest.raises(ModelError):
        LeanAgent(model=model).run("What is 6 times 7?")
    assert model.asked == 1
