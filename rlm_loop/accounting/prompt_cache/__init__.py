"""A prompt cache, simulated: which part of each request of a recorded run a provider would have had in its cache.

A cache holds prefixes of earlier requests, tools first, then message by message.  Under a provider's `Rules` the
longest prefix that is still held is the hit.  Where a caller's request does not begin with its request before, the
cache is broken there: `Break` names the cause of the text that stands at that place.

Whole messages are exact.  Within the first message that differs the tokens are shared by characters, so a hit that
ends inside a message may be off by a token or two.
"""

from __future__ import annotations

from rlm_loop.accounting.prompt_cache.report import Break, CacheReport, Read
from rlm_loop.accounting.prompt_cache.rules import RULES, Rules
from rlm_loop.accounting.prompt_cache.simulate import simulate

__all__ = ["RULES", "Break", "CacheReport", "Read", "Rules", "simulate"]
