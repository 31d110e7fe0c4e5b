from __future__ import annotations

from collections.abc import Callable

import pytest

from rlm_loop.models import ModelError, RetryPolicy


def failing(*errors: ModelError) -> Callable[[], str]:
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def transient(after: float | None = None) -> ModelError:
    error = ModelError("busy", retryable=True)
    error.retry_after = after
    return error


def test_waits_double_and_are_counted(waits: tuple[list[float], Callable[[float], None]]) -> None:
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
    tried: list[int] = []
    attempt = failing(*errors)

    def counted() -> str:
        tried.append(1)
        return attempt()

    with pytest.raises(ModelError):
        RetryPolicy(attempts=3, sleep=lambda _: None).call(counted)
    assert len(tried) == attempts
