"""Settings that a provider does not take: learned from its refusal, renamed or left out from then on, said once.

Which model takes what changes by the month, so there is no table of models here.  A provider that refuses names the
parameter; LiteLLM, which has such a table, refuses before anything is sent.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rlm_loop.messages import Prompt
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
    """The settings that the model `name` did not take so far.  Safe to use from threads."""

    name: str
    not_applied: dict[str, str] = field(default_factory=dict[str, str])

    def call(
        self, prompt: Prompt, settings: Mapping[str, Any], attempt: Callable[[Prompt, dict[str, Any]], T]
    ) -> tuple[T, dict[str, str]]:
        """Return the result of `attempt(prompt, settings)` without what is not taken, and what was done with that.

        Tries again at once as long as the refusal names a setting that was sent.  Raises what `attempt` raises.
        """
        while True:
            known = self.not_applied
            instead = {name: known[name] for name in _sent(prompt, settings) if name in known}
            dropped = {*instead, *(_TRANSPORT if "stream" in instead else ())}
            given = {k: v for k, v in settings.items() if k not in dropped}
            given |= {_OTHER_NAME[k]: settings[k] for k in instead if k in _OTHER_NAME}
            asked = replace(prompt, stop=()) if "stop" in instead else prompt
            asked = replace(asked, reply_schema=None) if "response_format" in instead else asked
            try:
                return attempt(asked, given), {k: v for k, v in instead.items() if k not in _TRANSPORT}
            except RequestRejected as error:
                names = refused(str(error.said or error), _sent(asked, given), error.parameter)
                if not names:
                    raise
                self._learn(names, error)

    def _learn(self, names: Collection[str], error: RequestRejected) -> None:
        new = {n: f"sent as {_OTHER_NAME[n]}" if n in _OTHER_NAME else "left out" for n in names}
        self.not_applied = {**self.not_applied, **new}
        for name, done in new.items():
            if (self.name, name) not in _said:
                _said.add((self.name, name))
                _log.warning("%s does not take %s: %s from now on", self.name, name, done)
                _log.debug("%s: %s", self.name, error)


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
