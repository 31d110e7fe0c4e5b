"""A model behind a provider: settings, retries, what a provider does not take, and the time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import wire
from rlm_loop.models.adapting import Adapting
from rlm_loop.models.base import Model, ModelError, RateLimited, RequestRejected, RetryPolicy
from rlm_loop.models.listening import listener
from rlm_loop.models.streams import STREAMED

#: Statuses below 500 after which the same request may be answered.
_TRANSIENT = (408, 409, 425)


class RemoteModel(Model):
    """A model that is asked over a network.  `_ask` asks it once, `_reply` reads what it answered.

    What is `None` among `temperature`, `seed` and `max_tokens` is left to the provider.  What that does not take
    of these and of the dialect's own is adapted or left out, and noted (see `adapting`).  `timeout` is in seconds.
    Rate limits, server errors and lost connections are tried again as `retry` says; the time lost is `Reply.waited`.
    """

    interruptible = True
    slots = 32
    loop_retry = None
    #: Asks for a reply in events, where somebody listens.
    _streaming: ClassVar[Mapping[str, Any]] = STREAMED

    def __init__(
        self,
        name: str,
        *,
        options: Mapping[str, Any],
        temperature: float | None = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        timeout: float = 600.0,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.name = name
        self.temperature = temperature
        self.seed = seed
        self.max_tokens = max_tokens
        self.timeout = timeout
        self._options = dict(options)
        self._retry = retry or RetryPolicy()
        self._adapting = Adapting(name)

    @property
    def sampling(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings sent with every prompt, without keys and addresses."""
        options = {k: v for k, v in self._options.items() if not k.startswith(("api_", "base_")) and k != "headers"}
        return {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens, **options}

    @property
    def price(self) -> tuple[float, float] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """US dollars per input and output token; `None` where no table knows."""
        price = self._full_price()
        return None if price is None else (price.input / 1e6, price.output / 1e6)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return one reply.

        Raises `AuthenticationFailed`, `ModelNotFound`, `ModelUnreachable`, `RateLimited`, `RequestRejected`, or
        `ModelError` for a server that keeps failing.
        """
        limit = self.max_tokens if max_tokens is None else max_tokens
        own = {"max_tokens": limit, "temperature": self.temperature, "seed": self.seed}
        settings = {k: v for k, v in {**own, **prompt.sampling}.items() if v is not None}
        settings |= self._streaming if listener.get() is not None else {}
        start = time.perf_counter()
        (answer, not_applied), waited = self._retry.call(lambda: self._adapting.call(prompt, settings, self._ask))
        reply = self._reply(answer, max(time.perf_counter() - start, waited), waited)
        return replace(reply, extra={**reply.extra, "not_applied": not_applied}) if not_applied else reply

    def _full_price(self) -> Price | None:
        """Return what it costs, with the discounts for what a cache holds."""
        raise NotImplementedError

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _reply(self, answer: Any, seconds: float, waited: float) -> Reply:
        return wire.to_reply(answer, model=self.name, seconds=seconds, waited=waited)

    def _refused(
        self, status: int, said: str, whole: str, *, after: str | None = None, parameter: str | None = None
    ) -> ModelError:
        """Return the error for an answer that is no reply, by its status.

        `said` is the reason in a short line, `whole` all that was said, `after` a `Retry-After`, and `parameter` what
        the provider names as the reason.
        """
        if status == 429:
            error: ModelError = RateLimited(f"{self.name} limits the rate ({said}): try later or slow down", self.name)
        elif status in _TRANSIENT or status >= 500:
            error = ModelError(f"{self.name} failed with status {status} ({said}): try again later", self.name)
        else:
            rejected = RequestRejected(f"{self.name} refused the request with status {status}: {said}", self.name)
            rejected.said, rejected.parameter = whole[:2000], parameter
            return rejected
        error.retryable = "insufficient_quota" not in whole  # no waiting brings money back
        error.retry_after = retry_after(after)
        return error


def retry_after(header: str | None, now: float | None = None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for: a number, or a date (RFC 9110, 10.2.3)."""
    try:
        asked = float(header or "nan")
        return None if asked != asked else max(asked, 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header or "").timestamp() - (time.time() if now is None else now), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
