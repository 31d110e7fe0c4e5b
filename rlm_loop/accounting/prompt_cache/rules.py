"""How providers' prompt caches work, as they say it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """How a provider's cache works.

    `minimum`: shorter prefixes (tokens) are neither kept nor found.  `block`: a hit is a multiple of so many tokens.
    `whole_messages`: a hit ends where a message ends.  `keeps_replies`: the reply is held with its prompt.
    `anew`: so many tokens at the end are read anew in any case.  `seconds`: how long a prefix is held after its last
    use (`None`: for the whole run).  `shared`: all callers of a run that use the same model share one cache, as one
    organisation's do; otherwise each has its own.  `source` is where the rules are from.
    """

    name: str
    minimum: int = 0
    block: int = 1
    whole_messages: bool = False
    keeps_replies: bool = False
    anew: int = 0
    seconds: float | None = None
    shared: bool = True
    source: str = ""

    def floor(self, tokens: int, total: int) -> int:
        """What is left of a common prefix as a hit, in a request of `total` tokens."""
        found = min(tokens, total - self.anew) // self.block * self.block
        return found if found >= max(self.minimum, 1) else 0


#: Rules as the providers state them.  Minimum and lifetime differ from model to model: `dataclasses.replace` them.
RULES: Mapping[str, Rules] = {
    "openai": Rules(
        "openai",
        minimum=1024,
        block=128,
        seconds=600.0,
        source="https://platform.openai.com/docs/guides/prompt-caching: from 1,024 tokens in steps of 128, tools and "
        "messages, exact prefixes, within an organisation, held for 5 to 10 minutes after the last use",
    ),
    "anthropic": Rules(
        "anthropic",
        minimum=1024,
        whole_messages=True,
        seconds=300.0,
        source="https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: tools, system, messages up to a "
        "breakpoint; 1,024 tokens (2,048 or 4,096 for some models); 5 minutes, renewed by use.  Taken as if each "
        "message ended in a breakpoint, which needs no more than the four allowed where requests only grow",
    ),
    "llama.cpp": Rules(
        "llama.cpp",
        keeps_replies=True,
        anew=1,
        source="llama.cpp server, cache_prompt with cache-ram: the longest prefix of any earlier request and its "
        "reply; the last token is always evaluated",
    ),
}
