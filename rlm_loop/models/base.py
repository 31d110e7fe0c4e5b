"""What a model is: one method.  Everything else (metering, retries, counting) is put around it.

Errors say whose fault it is: `ModelError` is the provider's or the set-up's, never the model's reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rlm_loop.accounting.ledger import Part
from rlm_loop.messages import Prompt, Reply
from rlm_loop.traces.redact import redact


@runtime_checkable
class Model(Protocol):
    """Anything that can complete a prompt.

    `name` goes into traces and tables.  `complete` blocks until the reply is whole; `max_tokens` limits what
    is generated (`None`: the model's own limit).  It raises `ModelError` where no reply could be had.

    It is called in another thread than the run's, which so can stop waiting for it at a time limit or at Ctrl-C.  A
    model with the attribute `interruptible = True` says that Ctrl-C ends its call at once, as it does waits of Python's
    own: it is called directly where there is no time limit.  One with `immediate = True` (a recorded one) takes no time
    at all.  Code that runs for long can see in `scope.call_scope`
    whether anybody still waits.
    """

    @property
    def name(self) -> str: ...

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply: ...


@runtime_checkable
class Measuring(Protocol):
    """A model that knows its tokenizer.

    `measure` returns the parts of the prompt *in the order in which the model reads them*; their tokens sum
    to exactly the prompt tokens that the model will report.
    """

    def measure(self, prompt: Prompt) -> Sequence[Part]: ...


@runtime_checkable
class Priced(Protocol):
    """A model that knows its price: US dollars per input and output token, or `None`."""

    @property
    def price(self) -> tuple[float, float] | None: ...


@dataclass(eq=False)
class ModelError(Exception):
    """No reply could be had.  `message` is one line that says what to do about it.

    The loop adds what was done until then: `usage`, `trace` (a path) and `partial_answer`.  `retry_after` is
    how many seconds the provider asked to wait (`None`: it did not say), `waited` how many were spent waiting
    for retries before this error was final.
    """

    message: str
    model: str = ""
    retryable: bool = False

    def __post_init__(self) -> None:
        self.message = redact(self.message)  # providers quote keys, and libraries whole requests
        super().__init__(self.message)
        self.usage: object = None
        self.trace: str | None = None
        self.partial_answer: object = None
        self.retry_after: float | None = None
        self.waited: float = 0.0

    def __str__(self) -> str:
        return self.message


class AuthenticationFailed(ModelError):
    """A key is missing or wrong; the message names the environment variable."""


class ModelNotFound(ModelError):
    """There is no such model; the message lists what there is."""


class ModelUnreachable(ModelError):
    """The address does not answer; the message names it."""


class RateLimited(ModelError):
    """Still refused after all retries."""


class RequestRejected(ModelError):
    """The provider refused the request itself (too long, a bad parameter).

    `said` are its own words, `parameter` is what it names as the reason, where it does (see `adapting`).
    """

    said: str = ""
    parameter: str | None = None


def no_text(model: str) -> RequestRejected:
    """What is said of a prompt that cannot be sent."""
    said = "the prompt holds a lone surrogate, which is no valid text: decode the data with errors='replace'"
    return RequestRejected(said, model)


class DiskFull(ModelError):
    """There is no room for the model's file; the message says where and how much."""


class Diverged(ModelError):
    """A recorded run was driven with another request than the recorded one; the message names the difference."""
