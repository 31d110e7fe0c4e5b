"""The arms: three released implementations of recursive language models, and our code loop at depth 0, 1 and 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))

from contenders import CONTENDERS, HERE, Contender

MINRLM = Contender("minrlm", "minRLM", "python", "minrlm", ("minrlm==0.1.5",), HERE / "constraints" / "minrlm.txt")


@dataclass(frozen=True)
class Arm:
    """A loop, and how deep its sub-calls may go (`None`: as the package has it)."""

    name: str
    loop: Contender
    depth: int | None = None


def _known(name: str) -> Contender:
    return next(one for one in CONTENDERS if one.name == name)


ARMS = (
    Arm("rlms", _known("rlms")),
    Arm("dspy_rlm", _known("dspy_rlm")),
    Arm("minrlm", MINRLM),
    *(Arm(f"ours-{depth}", _known("ours_code"), depth) for depth in (0, 1, 2)),
)
#: Against this arm all others are held.
BASELINE = "ours-1"


def chosen(names: str) -> Sequence[Arm]:
    """The arms of these names, with commas; all for an empty text.  Raises `ValueError` for others."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in {a.name for a in ARMS}]:
        raise ValueError(f"there is no arm {unknown[0]!r}; there are {', '.join(a.name for a in ARMS)}")
    return [a for a in ARMS if not wanted or a.name in wanted]
