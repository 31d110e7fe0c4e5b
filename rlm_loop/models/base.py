"""The base class of models, the listener to one at work, the retry policy and the errors."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.scope import call_scope
from rlm_loop.errors import ShownBriefly
from rlm_loop.messages import Prompt, Reply
from rlm_loop.traces.redact import redact

T = TypeVar("T")
Kind = Literal["begin", "loading", "thinking", "text", "call", "retry", "end"]
"""Kind of a text: a call begins (what was heard before is of another one), a model is being loaded (its name), a
piece of reasoning, of the reply, or of a tool call's arguments, an attempt that failed and why (what was heard of it
does not count), the call has ended."""

listener: ContextVar[Callable[[Kind, str], None] | None] = ContextVar("listener", default=None)
"""Set for one call of a model, where somebody wants to see its reply grow; a model that can then streams it."""


def tell(kind: Kind, text: str = "") -> None:
    """Tell the listener of this call, if there is one and the run still waits for the reply."""
    hear, scope = listener.get(), call_scope.get()
    if hear is not None and (scope is None or not scope.ended):
        hear(kind, text)


@dataclass(frozen=True)
class RetryPolicy:
    """At most `attempts` calls, waiting `first` seconds, then twice as long each time, at most `longest`.

    A server's own `Retry-After` is kept to, unless it asks for more than `patience` seconds: then the error is
    final.  Waits are shortened at random by up to a quarter, so that many callers do not return together; a
    `Retry-After` is never shortened.  No call is made for a run that has ended meanwhile.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 30.0
    patience: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.perf_counter
    chance: Callable[[], float] = random.random

    def call(self, attempt: Callable[[], T]) -> tuple[T, float]:
        """Return the result and the seconds that were lost in waits and failed attempts.

        Errors that say they are `retryable` are tried again; the last one is raised with `waited` set.
        """
        waited, number = 0.0, 1
        while True:
            if (scope := call_scope.get()) is not None:
                scope.check()  # nobody waits for the reply any more: it is not to be paid for
            start = self.clock()
            try:
                return attempt(), waited
            except ModelError as error:
                waited += self.clock() - start
                pause = min(self.first * 2 ** (number - 1), self.longest) * (1 - self.chance() / 4)
                pause = max(pause, error.retry_after or 0.0)
                if not error.retryable or number >= self.attempts or pause > self.patience:
                    error.waited = waited
                    raise
                tell("retry", f"asked again in {pause:.1f} s: {error}")
                self.sleep(pause)
                waited, number = waited + pause, number + 1


class Model(ABC):
    """A model that completes prompts.  A subclass needs a `name` and `complete`; the rest has defaults.

    A run calls it in another thread, so that it can stop waiting at a time limit or at Ctrl-C.  Code that takes long
    can see in `scope.call_scope` whether anybody still waits.
    """

    name: str
    """Its name in traces and tables."""
    price: tuple[float, float] | None = None
    """US dollars per input and output token; `None`: not known."""
    window: int | None = None
    """The tokens that prompt and reply may have together; `None`: not known.

    A model that asks a server for it raises `ModelError` where the server does not answer.
    """
    temperature: float | None = 0.0
    """The temperature of requests that name none; `None`: the provider's default."""
    max_tokens: int | None = None
    """The most tokens of a reply where the call sets no limit."""
    sampling: Mapping[str, Any] | None = None
    """Settings sent with every prompt; `None`: it has none, and takes none from a request."""
    slots: int = 1
    """The number of calls that it answers at once."""
    loop_retry: RetryPolicy | None = RetryPolicy()
    """The policy of a run after a `retryable` error; `None`: the model asks again itself, or nobody should."""
    interruptible: bool = False
    """Ctrl-C ends a call at once, as it ends Python's own waits: without a time limit no thread is needed."""
    immediate: bool = False
    """A call takes no time, as with recorded replies."""

    @abstractmethod
    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return the whole reply, of `max_tokens` at most; raise `ModelError` where there is none."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def measure(self, prompt: Prompt) -> Sequence[Part] | None:
        """Return the parts of the prompt in the order in which they are read; `None` without a tokenizer.

        Their tokens sum to exactly the prompt tokens that the reply will report.
        """
        return None

    def count(self, text: str) -> int:
        """Count the tokens of a text on its own; one for four characters without a tokenizer."""
        return -(-len(text) // 4)

    def estimate(self, prompt: Prompt) -> int:
        """Estimate the prompt tokens without a tokenizer: one for three characters, to be on the safe side."""
        texts = sum([len(span.text) for m in prompt.messages for span in m.spans])
        calls = sum([len(call.arguments) for m in prompt.messages for call in m.tool_calls])
        tools = sum([len(str(dict(t))) for t in prompt.tools])
        return (texts + calls + tools + 12 * len(prompt.messages)) // 3 + 1

    def prompt_tokens(self, prompt: Prompt) -> int:
        """Count the prompt tokens, template included, or estimate them without a tokenizer."""
        parts = self.measure(prompt)
        return self.estimate(prompt) if parts is None else sum([part.tokens for part in parts])


@dataclass(eq=False)
class ModelError(ShownBriefly, Exception):
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

    `said` are its own words, `parameter` is what it names as the reason, where it does.
    """

    said: str = ""
    parameter: str | None = None


class Diverged(ModelError):
    """A recorded run was driven with another request than the recorded one; the message names the difference."""
