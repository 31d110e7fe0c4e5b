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
from functools import cache
from typing import Any

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models.base import (
    AuthenticationFailed,
    Model,
    ModelError,
    ModelNotFound,
    RateLimited,
    RequestRejected,
    RetryPolicy,
    listener,
)
from rlm_loop.models.streams import STREAMED

_log = logging.getLogger(__name__)

#: Sent under another name where the first is refused.  Never left out: a budget relies on it.
_OTHER_NAME = {"max_tokens": "max_completion_tokens"}
#: Left out where it is refused.  The dialects do without a stop string or a schema.
_ADAPTED = ("stop", "temperature", "seed", "response_format", *_OTHER_NAME, *STREAMED)
_REFUSES = re.compile(
    r"unsupported|n[o']t (be )?(support|permit|allow|accept|available|valid)|un(known|recognized|expected)"
    r"|extra (inputs|fields)|cannot find field|only the default|deprecated",
    re.IGNORECASE,
)


class RemoteModel(Model):
    """A model that is asked over a network.  `_ask` asks it once.

    What is `None` among `temperature`, `seed` and `max_tokens` is left to the provider.  What that does not take
    of these and of the dialect's own is adapted or left out, and noted.  `timeout` is in seconds.  `options` and `more`
    are added to each request as they are.
    Rate limits, server errors and lost connections are tried again as `retry` says; the time lost is `Reply.waited`.
    """

    interruptible = True
    slots = 32
    loop_retry = None
    #: Whether a reply may come in pieces, where somebody listens.
    streams = True
    #: What it costs, with the discounts for what a cache holds.
    full_price: Price | None = None
    #: Says how to give it a key.
    _key_hint = ""

    def __init__(
        self,
        name: str,
        *,
        options: Mapping[str, Any] | None = None,
        temperature: float | None = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        timeout: float | None = 600.0,
        retry: RetryPolicy | None = None,
        **more: Any,
    ) -> None:
        self.name = name
        self.temperature = temperature
        self.seed = seed
        self.max_tokens = max_tokens
        self.timeout = timeout
        self._options = {**(options or {}), **more}
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
        price = self.full_price
        return None if price is None else (price.input / 1e6, price.output / 1e6)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return one reply.

        Raises `AuthenticationFailed`, `ModelNotFound`, `ModelUnreachable`, `RateLimited`, `RequestRejected`, or
        `ModelError` for a server that keeps failing.
        """
        limit = self.max_tokens if max_tokens is None else max_tokens
        own = {"max_tokens": limit, "temperature": self.temperature, "seed": self.seed}
        settings = {k: v for k, v in {**own, **prompt.sampling}.items() if v is not None}
        body = {**prompt.to_dict(), **settings, **(STREAMED if self.streams and listener.get() else {})}
        start = time.perf_counter()
        reply, waited = self._retry.call(lambda: self._adapted(body))
        usage, price = reply.usage, self.full_price
        if usage is not None and usage.cost is None and price is not None:
            usage = replace(usage, cost=price.of(usage))
        return replace(reply, usage=usage, seconds=max(time.perf_counter() - start, waited), waited=waited)

    def _adapted(self, body: Mapping[str, Any]) -> Reply:
        """Return the reply to a request without the settings that are not taken; it says what was done with these.

        Tries again at once as long as the refusal names a setting that was sent.  Raises what `_ask` raises.
        """
        while True:
            instead = {name: done for name, done in self._not_applied.items() if name in body}
            request = {k: v for k, v in body.items() if k not in instead}
            request |= {other: body[k] for k, other in _OTHER_NAME.items() if k in instead}
            try:
                reply = self._ask(request)
            except RequestRejected as error:
                names = refused(error.said, [n for n in _ADAPTED if n in request], error.parameter)
                if not names:
                    raise
                names += list(STREAMED) if STREAMED.keys() & {*names} else []
                done = {n: f"sent as {_OTHER_NAME[n]}" if n in _OTHER_NAME else "left out" for n in names}
                self._not_applied = {**self._not_applied, **done}
                for name in done:
                    _warn(self.name, name, done[name])
            else:
                told = {k: v for k, v in instead.items() if k not in STREAMED}  # how a reply comes is not recorded
                return replace(reply, extra={**reply.extra, "not_applied": told}) if told else reply

    def _ask(self, request: Mapping[str, Any]) -> Reply:
        """Return the reply to a request in the form of the chat API, without the name of the model."""
        raise NotImplementedError

    def _refused(
        self, status: int, said: str, whole: str, *, after: str | None = None, parameter: str | None = None
    ) -> ModelError:
        """Return the error for an answer that is no reply, by its status.

        `said` is the reason in a short line, `whole` all that was said, `after` a `Retry-After`, and `parameter` what
        the provider names as the reason.
        """
        name = self.name
        if status in (401, 403):
            return AuthenticationFailed(f"{name} needs a key, or refused it ({said}): {self._key_hint}", name)
        if status == 404:
            return ModelNotFound(f"{name} does not exist ({said}): check the model's name and the address", name)
        if status == 429:
            error: ModelError = RateLimited(f"{name} limits the rate ({said}): try later or slow down", name)
        elif status in (408, 409, 425) or not 400 <= status < 500:
            error = ModelError(f"{name} failed with status {status} ({said}): try again later", name)
        else:
            rejected = RequestRejected(f"{name} refused the request with status {status}: {said}", name)
            rejected.said, rejected.parameter = whole[:2000], parameter
            return rejected
        error.retryable = "insufficient_quota" not in whole  # no waiting brings money back
        error.retry_after = float(after) if after and re.fullmatch(r"\d+(\.\d+)?", after) else None
        return error


@cache
def _warn(model: str, setting: str, done: str) -> None:
    """Say once what is done with a setting."""
    _log.warning("%s does not take %s: %s from now on", model, setting, done)


def refused(said: str, sent: Collection[str], parameter: str | None = None) -> list[str]:
    """Return the settings, of those that were sent, which a refusal says are not taken.

    `parameter` is the one that the provider names in a field of its own (`messages.[2].content` is none of ours).  A
    limit of tokens gets its other name only where the refusal tells it: elsewhere that might be taken for no limit.
    """
    sent = [n for n in sent if n not in _OTHER_NAME or _OTHER_NAME[n] in said]
    if parameter:
        named = [n for n in sent if n == re.split(r"[.\[]", parameter)[0]]
    else:
        named = [n for n in sent if re.search(rf"(?<![\w.]){n}(?!\w)", said)]
    # whatever is wrong with a schema, the reply can do without
    return named if _REFUSES.search(said) or (parameter and named == ["response_format"]) else []
