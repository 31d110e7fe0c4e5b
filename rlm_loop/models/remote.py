"""A model behind a provider: settings, retries, what a provider does not take, and the time.

Which model takes which setting changes by the month, so there is no table of models here.  A provider that refuses
names the parameter; LiteLLM, which has such a table, refuses before anything is sent.  It is renamed or left out from
then on, and said once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import wire
from rlm_loop.models.base import Model, ModelError, RateLimited, RequestRejected, RetryPolicy
from rlm_loop.models.listening import listener
from rlm_loop.models.streams import STREAMED

_log = logging.getLogger(__name__)

#: Sent under another name where the first is refused.  Never left out: a budget relies on it.
_OTHER_NAME = {"max_tokens": "max_completion_tokens"}
#: Left out where it is refused, and what the refusal may call it.  The dialects do without a stop string or a schema.
_WORDS = {
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "response_format": ("response_format", "json_schema", "responseSchema", "output_format", "format"),
    "max_tokens": ("max_tokens",),
    "stream": ("stream",),
    "stream_options": ("stream_options", "include_usage"),
}
#: How a reply comes, not what it is: that it was asked for otherwise is no part of the record.
_TRANSPORT = ("stream", "stream_options")
_REFUSES = re.compile(
    r"unsupported|n[o']t (be )?(support|permit|allow|accept|available|valid)|un(known|recognized|expected)"
    r"|extra (inputs|fields)|cannot find field|only the default|deprecated",
    re.IGNORECASE,
)
_said: set[tuple[str, str]] = set()
#: Statuses below 500 after which the same request may be answered.
_TRANSIENT = (408, 409, 425)


class RemoteModel(Model):
    """A model that is asked over a network.  `_ask` asks it once, `_reply` reads what it answered.

    What is `None` among `temperature`, `seed` and `max_tokens` is left to the provider.  What that does not take
    of these and of the dialect's own is adapted or left out, and noted.  `timeout` is in seconds.
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
        self._not_applied: dict[str, str] = {}  # the settings that it did not take so far

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
        (answer, not_applied), waited = self._retry.call(lambda: self._adapted(prompt, settings))
        reply = self._reply(answer, max(time.perf_counter() - start, waited), waited)
        return replace(reply, extra={**reply.extra, "not_applied": not_applied}) if not_applied else reply

    def _adapted(self, prompt: Prompt, settings: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
        """Return the answer to a request without the settings that are not taken, and what was done with these.

        Tries again at once as long as the refusal names a setting that was sent.  Raises what `_ask` raises.
        """
        while True:
            known = self._not_applied
            instead = {name: known[name] for name in _sent(prompt, settings) if name in known}
            dropped = {*instead, *(_TRANSPORT if "stream" in instead else ())}
            given = {k: v for k, v in settings.items() if k not in dropped}
            given |= {_OTHER_NAME[k]: settings[k] for k in instead if k in _OTHER_NAME}
            asked = replace(prompt, stop=()) if "stop" in instead else prompt
            asked = replace(asked, reply_schema=None) if "response_format" in instead else asked
            try:
                return self._ask(asked, given), {k: v for k, v in instead.items() if k not in _TRANSPORT}
            except RequestRejected as error:
                names = refused(str(error.said or error), _sent(asked, given), error.parameter)
                if not names:
                    raise
                self._learn(names, error)

    def _learn(self, names: Collection[str], error: RequestRejected) -> None:
        new = {n: f"sent as {_OTHER_NAME[n]}" if n in _OTHER_NAME else "left out" for n in names}
        self._not_applied = {**self._not_applied, **new}
        for name, done in new.items():
            if (self.name, name) not in _said:
                _said.add((self.name, name))
                _log.warning("%s does not take %s: %s from now on", self.name, name, done)
                _log.debug("%s: %s", self.name, error)

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


def refused(said: str, sent: Collection[str], parameter: str | None = None) -> list[str]:
    """Return the settings, of those that were sent, which a refusal says are not taken.

    `parameter` is the one that the provider names in a field of its own (`messages.[2].content` is none of ours).  A
    limit of tokens gets its other name only where the refusal tells it: elsewhere that might be taken for no limit.
    """
    sent = [n for n in sent if n not in _OTHER_NAME or _OTHER_NAME[n] in said]
    if parameter:
        sent = [n for n in sent if re.split(r"[.\[]", parameter)[0] in _WORDS[n]][:1]
    if parameter and sent == ["response_format"]:  # whatever is wrong with the schema
        return sent
    if not _REFUSES.search(said):
        return []
    return [n for n in sent if parameter or any(re.search(rf"(?<![\w.]){word}(?!\w)", said) for word in _WORDS[n])]


def _sent(prompt: Prompt, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings in a request that can be adapted."""
    own = {"stop": bool(prompt.stop), "response_format": prompt.reply_schema is not None}
    return [name for name in _WORDS if own.get(name) or settings.get(name) is not None]
