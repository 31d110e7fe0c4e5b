"""Questions about texts that are too long for a window: real text, with lines in it whose truth is known by code."""

from rlm_loop.tasks.long_context.suite import FAMILIES, from_name, long_context

__all__ = ["FAMILIES", "from_name", "long_context"]
