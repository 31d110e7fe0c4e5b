"""Amounts, and texts, in a few words."""

from __future__ import annotations

from rlm_loop.messages import Usage


def counted(usage: Usage | None) -> str:
    """Tokens of a call or of a run in a few words; what the provider does not say is `?`."""
    if usage is None:
        return "tokens not reported"
    cached = _of(cached=usage.cache_read_tokens, written=usage.cache_write_tokens)
    thought = _of(thought=usage.reasoning_tokens)
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    return f"{number(usage.input_tokens)} tokens in{cached}, {number(usage.output_tokens)} out{thought}{cost}"


def _of(**parts: int | None) -> str:
    said = ", ".join(f"{number:,} {name}" for name, number in parts.items() if number)
    return f" ({said})" if said else ""


def shortened(text: str, most: int) -> str:
    """A text in one line of at most so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
