"""One colour for each cause of tokens, wherever causes are drawn."""

from __future__ import annotations

import zlib

#: From Okabe and Ito's colours and neighbours of them; what a strategy adds (`scaffold:...`) is in reds, to stand out.
CAUSE_COLOURS = {
    "template": "#8C8C8C",
    "system": "#0072B2",
    "tool_schema": "#CC79A7",
    "task": "#009E73",
    "assistant": "#56B4E9",
    "repl_output": "#E69F00",
    "tool_result": "#B8860B",
    "error": "#D55E00",
    "summary": "#7B61B8",
    "unattributed": "#C4C4C4",
}
_SCAFFOLD = ("#A8123E", "#E0457B", "#7A1F5C", "#F0776B")
_OTHER = "#A6A6A6"


def cause_colour(cause: str) -> str:
    """The colour of a cause as `#RRGGBB`; the same in every run for the same injector, grey for an unknown cause."""
    if cause.startswith("scaffold:"):
        return _SCAFFOLD[zlib.crc32(cause.encode()) % len(_SCAFFOLD)]
    return CAUSE_COLOURS.get(cause, _OTHER)


def cause_place(cause: str) -> tuple[int, str]:
    """The sort key that stacks causes: what is fixed first, then what a strategy adds, then what turns add."""
    order = list(CAUSE_COLOURS)
    if cause.startswith("scaffold:"):
        return order.index("assistant") * 2 - 1, cause
    return (order.index(cause) * 2 if cause in CAUSE_COLOURS else 2 * len(order)), cause
