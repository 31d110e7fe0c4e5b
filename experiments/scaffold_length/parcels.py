"""A task of many turns whose right next action can be computed at each of them: a chain of parcels, two tools.

`Chain` is the world and its oracle.  Every number in it has four digits, so that turns are of equal length.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from rlm_loop import Task
from rlm_loop.actions import CallTool
from rlm_loop.tasks import Score
from rlm_loop.tools import ToolError

DEPOTS = ("Oslo", "Paris", "Rome", "Madrid", "Berlin", "Vienna", "Dublin", "London")
#: Parcels of a chain: two actions each, so that 40 turns are known.
LENGTH = 20
#: What comes of a call that passed the schema; everything else was no valid action.
PERFORMED = (None, "runtime", "timeout")

QUESTION = (
    "Follow a chain of parcels. Begin with parcel {first}. Read a parcel with read_parcel. Then ask its depot about it "
    "with ask_depot: the depot names a next and a spare parcel. If the parcel is in good condition, read the next one; "
    "if it is damaged, read the spare one. Go on until a depot names no parcel, then give the number of the last one."
)


@dataclass(frozen=True)
class Step:
    """One action of the oracle, and what comes of it."""

    tool: str
    arguments: dict[str, Any]
    result: str


@dataclass(frozen=True)
class Parcel:
    number: int
    depot: str
    kilograms: int
    damaged: bool
    next: int | None
    spare: int | None


class Chain:
    """A world of parcels, the two tools on it, and the oracle that walks it.  Equal numbers make equal worlds."""

    def __init__(self, number: int) -> None:
        draw = random.Random(f"parcels-{number}")
        names = draw.sample(range(1000, 10_000), 2 * LENGTH)
        self._parcels: dict[int, Parcel] = {}
        self.path = names[:LENGTH]
        for place, name in enumerate(self.path):
            last = place == LENGTH - 1
            good, other = (None, None) if last else (self.path[place + 1], names[LENGTH + place])
            damaged = draw.random() < 0.5
            to, spare = (other, good) if damaged else (good, other)
            self._add(name, draw, damaged, to, spare)
        for name in names[LENGTH:]:  # where a wrong turn leads: it ends there
            self._add(name, draw, draw.random() < 0.5, None, None)

    def _add(self, name: int, draw: random.Random, damaged: bool, to: int | None, spare: int | None) -> None:
        self._parcels[name] = Parcel(name, draw.choice(DEPOTS), draw.randint(10, 99), damaged, to, spare)

    @property
    def question(self) -> str:
        return QUESTION.format(first=self.path[0])

    def tools(self) -> tuple[Callable[..., Any], ...]:
        """The two tools; both only look."""

        def read_parcel(number: int) -> str:
            """Read a parcel: its depot, weight and condition."""
            return self._read(number)

        def ask_depot(depot: str, parcel: int) -> str:
            """Ask a depot which parcels follow a parcel that is there."""
            return self._ask(depot, parcel)

        return read_parcel, ask_depot

    def steps(self) -> Iterator[Step]:
        """What the oracle does, turn by turn, from what it was told until then and nothing else."""
        at: int | None = self.path[0]
        while at is not None:
            parcel = self._parcels[at]
            yield Step("read_parcel", {"number": at}, self._read(at))
            asked = {"depot": parcel.depot, "parcel": at}
            yield Step("ask_depot", asked, self._ask(parcel.depot, at))
            at = parcel.spare if parcel.damaged else parcel.next

    def _found(self, number: int) -> Parcel:
        if number not in self._parcels:
            raise ToolError("runtime", f"there is no parcel {number}")
        return self._parcels[number]

    def _read(self, number: int) -> str:
        parcel = self._found(number)
        condition = "damaged" if parcel.damaged else "good"
        return f"Parcel {number}: depot {parcel.depot}, {parcel.kilograms} kg, condition {condition}."

    def _ask(self, depot: str, number: int) -> str:
        parcel = self._found(number)
        if depot.strip().casefold() != parcel.depot.casefold():
            raise ToolError("runtime", f"parcel {number} is not in {depot}")
        if parcel.next is None:
            return f"{parcel.depot} on parcel {number}: no further parcel."
        return f"{parcel.depot} on parcel {number}: next {parcel.next}, spare {parcel.spare}."


@cache
def chain(number: int) -> Chain:
    """The chain of that number."""
    return Chain(number)


@dataclass(frozen=True)
class NextAction:
    """Judges the first action of the one turn that was taken: `value` is 1 for the right one, 0.5 for a valid one.

    Right is what comes to the same: the same tool, and the same result.  Valid is a call of a tool that there is
    (`final_answer` among them) whose arguments pass its schema.
    """

    tool: str
    result: str

    def __call__(self, attempt: Any) -> Score:
        done = attempt.artifact or []
        if not done:
            return Score(False, 0.0, "no action")
        first, more = done[0], f" (and {len(done) - 1} more)" if len(done) > 1 else ""
        if first["tool"] is None or first["failure"] not in PERFORMED:
            return Score(False, 0.0, f"not valid: {first['failure'] or 'no tool was called'}{more}")
        said = f"{first['tool']}({first['arguments']})"
        if first["tool"] == self.tool and first["result"] == self.result:
            return Score(True, 1.0, f"right: {said}{more}")
        return Score(False, 0.5, f"valid, but not right: {said}{more}")


def task(number: int, turn: int) -> Task:
    """What comes next in a chain at a turn (from 1), when all before was done as the oracle does it."""
    world = chain(number)
    right = list(world.steps())[turn - 1]
    return Task(
        f"chain-{number}-turn-{turn}",
        world.question,
        NextAction(right.tool, right.result),
        expected=json.dumps([right.tool, right.arguments]),
        tools=world.tools(),
        needs_repl=False,
        level=turn,
        facts={"chain": number, "turn": turn},
    )


def action_of(action: Any, observation: Any) -> dict[str, Any]:
    """One action of a turn, as the scorer reads it."""
    failure = None if observation.failure is None else observation.failure.kind
    if not isinstance(action, CallTool):
        return {"tool": None, "arguments": "", "failure": failure, "result": observation.text}
    return {"tool": action.name, "arguments": action.arguments, "failure": failure, "result": observation.text}
