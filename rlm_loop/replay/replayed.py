"""What a replay found."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_loop.outcome import Outcome
from rlm_loop.replay.differences import Difference


@dataclass(frozen=True)
class Replayed:
    """A recorded run, driven again by today's loop.

    `same`: every request was equal byte for byte, and so were causes, turns, stop, answer, sub-calls, compactions and
    the ledger's rows; `difference` is the first that was not, `differences` are all that were found (after the first,
    later ones often follow from it).  `requests` were compared, `equal` of them were the same.
    `complete` is whether the record has an end (not so where the run was killed, or the file was cut).
    `damage` are bodies that were changed after they were written, one line each, `notes` what could not be checked.
    `outcome` is today's; `None` where the record ended before the run did.
    """

    requests: int
    equal: int
    turns: int
    differences: tuple[Difference, ...] = ()
    damage: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    outcome: Outcome | None = None

    @property
    def same(self) -> bool:
        return not self.differences and not self.damage

    @property
    def difference(self) -> Difference | None:
        """The first difference: of the requests and turns as they came, then of the rest."""
        return self.differences[0] if self.differences else None

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        """Readable, a line for each thing to say."""
        counts = f"{self.equal} of {self.requests} requests equal byte for byte, {self.turns} turns"
        if self.same:
            lines = [f"same: {counts}"]
        elif self.difference is None:
            lines = [f"same, but the record was changed: {counts}"]
        else:
            lines = [f"differs: {self.difference}", counts]
            if (more := len(self.differences) - 1) > 0:
                lines.append(f"{more} further difference{'' if more == 1 else 's'}, which may follow from it")
        lines += [f"damaged: {line}" for line in self.damage]
        if not self.complete:
            lines.append("the record has no end: the run was killed, or the file was cut")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
