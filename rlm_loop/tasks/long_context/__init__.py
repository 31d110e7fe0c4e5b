"""Questions about texts that are too long for a window: real text, with lines in it whose truth is known by code."""

from rlm_loop.tasks.long_context.plan import size_name, size_of
from rlm_loop.tasks.long_context.suite import FAMILIES, from_name, long_context
from rlm_loop.tasks.long_context.text import RealText, real_text

__all__ = ["FAMILIES", "RealText", "from_name", "long_context", "real_text", "size_name", "size_of"]
