from __future__ import annotations

import pytest

from rlm_loop import LeanAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, ModelError, Reply, RetryPolicy, Usage


def busy(after: float | None = None) -> ModelError:
    error = ModelError("busy", retryable=True)
    error.retry_after = after
    return error


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
        return Reply("42", usage=Usage(10, 5))


def test_a_run_asks_a_users_own_model_again_after_waits_that_double() -> None:
    seen: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        seen.append(seconds)
        clock[0] += seconds

    retry = RetryPolicy(9, 1.0, longest=3.0, sleep=sleep, clock=lambda: clock[0], chance=lambda: 0.0)
    model = Busy(*[busy() for _ in range(4)], busy(after=5.0), retry=retry)
    outcome = LeanAgent(model=model).run("What is 6 times 7?")
    assert (outcome.answer, model.asked, seen) == ("42", 6, [1.0, 2.0, 3.0, 3.0, 5.0])
    (call,) = outcome.ledger.calls  # one call, which took its waits
    assert (call.waited, call.seconds) == (14.0, 14.0)
    assert outcome.working_seconds < outcome.seconds


@pytest.mark.parametrize(
    ("error", "attempts", "asked"),
    [
        (ModelError("final"), 3, 1),
        (busy(), 3, 3),
        (busy(after=1000.0), 3, 1),  # longer than anyone waits: say so at once
        (busy(), None, 1),
    ],
)
def test_nor_is_it_asked_again_in_vain(error: ModelError, attempts: int | None, asked: int) -> None:
    model = Busy(*[error] * 9, retry=None if attempts is None else RetryPolicy(attempts, sleep=lambda _: None))
    with pytest.raises(ModelError):
        LeanAgent(model=model).run("What is 6 times 7?")
    assert model.asked == asked
