"""What a prompt cache would have done for a run, and what broke it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal

from rlm_loop.accounting.prompt_cache.rules import Rules

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Break:
    """A request that did not begin with its caller's request before.

    `message` is the index of the first message that differs (-1: the tools), `cause` the cause of the text there, `why`
    whether it was `changed` or earlier messages were `left_out`, `lost` how many tokens of the request before could
    not be found any more, `text` how the text begins that stands there now (of tools: those that came or went).
    """

    call: int
    turn: int
    message: int
    cause: str
    why: Literal["changed", "left_out"]
    lost: int
    text: str = ""
    node: str = "0"


@dataclass(frozen=True)
class Read:
    """One request: its prompt tokens, how many of them would have been a hit, how many would have been written to the
    cache, and how many the provider reported as cached (`None`: it did not say)."""

    call: int
    turn: int
    depth: int
    node: str
    model: str
    tokens: int
    hit: int
    written: int
    reported: int | None


@dataclass(frozen=True)
class CacheReport:
    """What the cache would have done for a run."""

    rules: Rules
    reads: tuple[Read, ...]
    breaks: tuple[Break, ...]

    @property
    def tokens(self) -> int:
        return sum(r.tokens for r in self.reads)

    @property
    def hit(self) -> int:
        return sum(r.hit for r in self.reads)

    def broken_by(self) -> dict[str, int]:
        """Tokens lost by cause, most first."""
        lost: dict[str, int] = {}
        for found in self.breaks:
            name = found.cause if found.why == "changed" else "history left out"
            lost[name] = lost.get(name, 0) + found.lost
        return dict(sorted(lost.items(), key=lambda item: -item[1]))

    def frame(self) -> pd.DataFrame:
        """One row a request."""
        import pandas as pd

        frame = pd.DataFrame([asdict(r) for r in self.reads], columns=[f.name for f in fields(Read)])
        return frame.astype({"reported": "Int64"})

    def __str__(self) -> str:
        share = f" ({self.hit / self.tokens:.0%})" if self.tokens else ""
        lines = [f"{self.rules.name}: {self.hit:,} of {self.tokens:,} prompt tokens from the cache{share}"]
        lines += [f"  broken by {cause}: {lost:,} tokens lost" for cause, lost in self.broken_by().items()]
        return "\n".join(lines)
