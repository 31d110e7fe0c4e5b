"""What models behind a provider have in common: settings, retries, what a provider does not take, and the time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import wire
from rlm_loop.models.adapting import Adapting, noted
from rlm_loop.models.base import Model, ModelError, RateLimited, RequestRejected, RetryPolicy
from rlm_loop.models.listening import listener
from rlm_loop.models.streams import STREAMED

#: Statuses after which the same request may be answered.
_TRANSIENT = (408, 409, 425, 429, 500, 502, 503, 504, 529)


class RemoteModel(Model):
    """A model that is asked over a network.  `_ask` asks it once, `_reply` reads what it answered."""

    def __init__(
        self,
        name: str,
        *,
        temperature: float | None,
        seed: int | None,
        max_tokens: int | None,
        timeout: float,
        retry: RetryPolicy | None,
        options: Mapping[str, Any],
    ) -> None:
        self.name = name
        self.temperature = temperature
        self.seed = seed
        self.max_tokens = max_tokens
        self.timeout = timeout
        self._options = dict(options)
        self._retry = retry or RetryPolicy()
        self._adapting = Adapting(name)

    interruptible = True
    slots = 32
    loop_retry = None
    #: What asks for a reply in events, where somebody listens.
    _streaming: ClassVar[Mapping[str, Any]] = STREAMED

    @property
    def sampling(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings sent with every prompt, without keys and addresses."""
        options = {k: v for k, v in self._options.items() if not k.startswith(("api_", "base_")) and k != "headers"}
        return {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens, **options}

    @property
    def price(self) -> tuple[float, float] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """US dollars per input and output token; `None` where no table knows."""
        found = self._full_price()
        return None if found is None else (found.input / 1e6, found.output / 1e6)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """One reply.

        Raises `AuthenticationFailed`, `ModelNotFound`, `ModelUnreachable`, `RateLimited`, `RequestRejected`, or
        `ModelError` for a server that keeps failing.
        """
        limit = self.max_tokens if max_tokens is None else max_tokens
        own = {"max_tokens": limit, "temperature": self.temperature, "seed": self.seed}
        settings = {k: v for k, v in {**own, **prompt.sampling}.items() if v is not None}
        settings |= self._streaming if listener.get() is not None else {}
        start = time.perf_counter()
        (answer, not_applied), waited = self._retry.call(lambda: self._adapting.call(prompt, settings, self._ask))
        return noted(self._reply(answer, max(time.perf_counter() - start, waited), waited), not_applied)

    def _full_price(self) -> Price | None:
        """What it costs, with the discounts for what a cache holds."""
        raise NotImplementedError

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _reply(self, answer: Any, seconds: float, waited: float) -> Reply:
        return wire.to_reply(answer, model=self.name, seconds=seconds, waited=waited)

    def _refused(
        self, status: int, said: str, whole: str, *, after: str | None = None, parameter: str | None = None
    ) -> ModelError:
        """What an answer means that is no reply, by its status.

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
    """The seconds that a `Retry-After` header asks for: a number, or a date (RFC 9110, 10.2.3)."""
    if not header:
        return None
    try:
        asked = float(header)
        return None if asked != asked else max(asked, 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - (time.time() if now is None else now), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
