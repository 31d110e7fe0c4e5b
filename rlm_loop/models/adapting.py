"""Settings that a provider does not take: learned from its refusal, adapted or left out from then on, said once.

Which model takes what changes by the month, so there is no table of models here.  A provider that refuses names the
parameter; LiteLLM, which has such a table, refuses before anything is sent.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models.base import RequestRejected

_log = logging.getLogger(__name__)
T = TypeVar("T")

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


@dataclass
class Adapting:
    """What the model `name` did not take so far.  Safe to use from threads."""

    name: str
    not_applied: dict[str, str] = field(default_factory=dict[str, str])
    _lock: OwnLock = field(default_factory=OwnLock, repr=False)

    def call(
        self, prompt: Prompt, settings: Mapping[str, Any], attempt: Callable[[Prompt, dict[str, Any]], T]
    ) -> tuple[T, dict[str, str]]:
        """The result of `attempt(prompt, settings)` without what is not taken, and what was done with that.

        Tries again at once as long as the refusal names a setting that was sent.  Raises what `attempt` raises.
        """
        while True:
            asked, given, instead = self._fitted(prompt, settings)
            try:
                return attempt(asked, given), {k: v for k, v in instead.items() if k not in _TRANSPORT}
            except RequestRejected as error:
                if not self._learn(error, _sent(asked, given)):
                    raise

    def _fitted(self, prompt: Prompt, settings: Mapping[str, Any]) -> tuple[Prompt, dict[str, Any], dict[str, str]]:
        known = self.not_applied
        if not known:
            return prompt, dict(settings), {}
        instead = {name: known[name] for name in _sent(prompt, settings) if name in known}
        if "stop" in instead:
            prompt = replace(prompt, stop=())
        if "response_format" in instead:
            prompt = replace(prompt, reply_schema=None)
        dropped = {*instead, *(_TRANSPORT if "stream" in instead else ())}
        given = {k: v for k, v in settings.items() if k not in dropped}
        given |= {_OTHER_NAME[k]: settings[k] for k in instead if k in _OTHER_NAME}
        return prompt, given, instead

    def _learn(self, error: RequestRejected, sent: Collection[str]) -> bool:
        """Whether the refusal is about settings that were sent, which are not sent again."""
        found = refused(str(error.said or error), sent, error.parameter)
        with self._lock:
            new = {n: f"sent as {_OTHER_NAME[n]}" if n in _OTHER_NAME else "left out" for n in found}
            self.not_applied = {**self.not_applied, **new}
            tell = [(n, done) for n, done in new.items() if (self.name, n) not in _said]
            _said.update((self.name, n) for n, _ in tell)
        for name, done in tell:
            _log.warning("%s does not take %s: %s from now on", self.name, name, done)
            _log.debug("%s: %s", self.name, error)
        return bool(new)


def refused(said: str, sent: Collection[str], parameter: str | None = None) -> list[str]:
    """The settings, of those that were sent, which a refusal says are not taken.

    `parameter` is the one that the provider names in a field of its own (`messages.[2].content` is none of ours).  A
    limit of tokens gets its other name only where the refusal tells it: elsewhere that might be taken for no limit.
    """
    sent = [n for n in sent if n not in _OTHER_NAME or _OTHER_NAME[n] in said]
    if parameter:
        name = next((n for n in sent if re.split(r"[.\[]", parameter)[0] in _WORDS[n]), None)
        fits = name is not None and (name == "response_format" or _REFUSES.search(said))
        return [cast("str", name)] if fits else []
    if not _REFUSES.search(said):
        return []
    return [n for n in sent if any(re.search(rf"(?<![\w.]){word}(?!\w)", said) for word in _WORDS[n])]


def noted(reply: Reply, not_applied: Mapping[str, str]) -> Reply:
    """The reply with a note of what its request was to have and had not; a trace keeps it (`extra`)."""
    return replace(reply, extra={**reply.extra, "not_applied": dict(not_applied)}) if not_applied else reply


def _sent(prompt: Prompt, settings: Mapping[str, Any]) -> list[str]:
    """The names of the settings in a request that can be adapted."""
    own = {"stop": bool(prompt.stop), "response_format": prompt.reply_schema is not None}
    return [name for name in _WORDS if own.get(name) or settings.get(name) is not None]
