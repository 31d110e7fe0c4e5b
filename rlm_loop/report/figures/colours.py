"""One colour for each cause of tokens and for each arm that studies share, wherever they are drawn."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

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


#: Okabe and Ito's colours, which stay apart in the common forms of colour blindness; yellow is left out for contrast.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
#: The place in `COLOURS` of the arms that several studies have, so that an arm has one colour in all figures.
ARM_PLACES = {"lean": 0, "react-text": 1, "code": 2, "react-native": 3, "mellea-react": 3, "lean-text": 5}


def arm_places(arms: Sequence[str]) -> list[int]:
    """The place of each arm: its own (`ARM_PLACES`) where it has one that is free, else the lowest that is free.

    A place from `len(COLOURS)` on stands for a colour that is used a second time.
    """
    own: dict[str, int] = {}
    for arm in arms:
        place = ARM_PLACES.get(arm.partition(",")[0])  # with several models a label is "arm, model"
        if place is not None and place not in own.values():
            own[arm] = place
    free = (place for place in range(len(ARM_PLACES) + len(arms)) if place not in own.values())
    return [own[arm] if arm in own else next(free) for arm in arms]
