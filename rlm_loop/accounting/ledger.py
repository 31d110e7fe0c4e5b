"""Every model call of a run, split by cause and by the turn that wrote the text.

The law of this module: the rows of a call sum to the prompt tokens which that call reported (see `attribution`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.attribution import UNATTRIBUTED, Part, Resent, reconcile, shared_out, tool_name
from rlm_loop.accounting.scope import OwnLock
from rlm_loop.actions import INTENT, INTENT_CAUSE
from rlm_loop.messages import Usage
from rlm_loop.traces.values import drawing

if TYPE_CHECKING:
    import pandas as pd

#: Counted by the model's own tokenizer; by another one; or known as a sum only, of which each text has a share.
COUNTING = ("exact", "counted with another tokenizer", "shared out by length")


@dataclass(frozen=True)
class Row:
    """Input tokens of one call charged to one cause and one turn of origin.

    `resent` is the part of `tokens` that an earlier call of the same agent had already sent (the rest is sent for the
    first time), `cached` the part that the provider took from its cache and `written` the part that it put there
    (`None` where it does not say).  `detail` is the tool, the tag of a block, or "".
    """

    call: int
    turn: int
    depth: int
    purpose: str
    cause: str
    origin_turn: int
    tokens: int
    resent: int
    cached: int | None
    detail: str = ""
    written: int | None = None


@dataclass(frozen=True)
class Call:
    """A model call: its caller and purpose, its cost, and the parts of its input.

    `exact`: a tokenizer counted the very number that the provider reported.  Otherwise the rows are an account that
    sums to the reported number all the same; `counted` is the tokenizer's number (`None`: none was at hand), and
    `usage_warning` says in one line what is missing or impossible in the provider's report.
    `node` is the caller's path in the tree of calls ("0" is the root, see `call_tree`).  `sent` is the number of
    leading messages that the caller's call before had, `again` what else it had sent at any time (compaction moves
    messages forward), `tools` those of the request.
    """

    call: int
    turn: int
    depth: int
    purpose: str
    usage: Usage
    parts: Sequence[Part] = field(repr=False)
    exact: bool
    seconds: float = 0.0
    waited: float = 0.0
    node: str = "0"
    counted: int | None = None
    usage_warning: str = ""
    sent: int = 0
    again: tuple[Resent, ...] = field(default=(), repr=False)
    tools: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The parts in sum by cause and turn of origin, made to sum to the bill.

        The tokens that a provider took from its cache are the leading ones, and those that it put there come next.
        The tokens of all tools are shared out among them by the length of their JSON.
        """
        who, usage = (self.call, self.turn, self.depth, self.purpose), self.usage
        in_cache, to_cache = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        totals: dict[tuple[str, str, int], list[int]] = {}
        for part in _by_tool(reconcile(self.parts, usage.input_tokens), self.tools):
            cause, _, detail = part.cause.partition("/")
            total = totals.setdefault((cause, detail, part.origin_turn), [0, 0, 0, 0])
            read = min(in_cache, part.tokens)
            wrote = min(to_cache, part.tokens - read)
            in_cache, to_cache = in_cache - read, to_cache - wrote
            for column, tokens in enumerate((part.tokens, part.tokens * self._sent_before(part), read, wrote)):
                total[column] += tokens
        return tuple(
            Row(
                *(*who, cause, origin, tokens, resent),
                None if usage.cache_read_tokens is None else read,
                detail,
                None if usage.cache_write_tokens is None else wrote,
            )
            for (cause, detail, origin), (tokens, resent, read, wrote) in totals.items()
        )

    def _sent_before(self, part: Part) -> bool:
        """Say whether the caller had sent a part before.  Unattributed tokens never count: their text is not known."""
        before = (self.sent > 0 and part.message < self.sent) or part.message in self.again
        return (before or (part.message, part.cause) in self.again) and part.cause != UNATTRIBUTED


def _by_tool(parts: Iterable[Part], tools: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """Yield the parts, with the tokens of all tools shared out among them and the statements of typed actions."""
    sizes: list[tuple[str, int]] = []
    for tool in tools:
        name, size, stated = tool_name(tool), len(json.dumps(tool, default=str)), _intent_size(tool)
        sizes += [(f"tool_schema/{name}", size - stated), *([(f"{INTENT_CAUSE}/{name}", stated)] if stated else [])]
    for part in parts:
        if part.cause == "tool_schema" and tools:
            shares = shared_out(part.tokens, [size for _, size in sizes])
            yield from (part._replace(cause=cause, tokens=n) for (cause, _), n in zip(sizes, shares, strict=True) if n)
        else:
            yield part


def _intent_size(tool: Mapping[str, Any]) -> int:
    """Return the characters that the statements of a typed action take in the schema of a tool."""
    try:
        properties = tool["function"]["parameters"]["properties"]
        stated = {k: v for k, v in INTENT.items() if properties.get(k) == v}
    except (KeyError, TypeError, AttributeError):  # a tool of another API, or of a stranger
        return 0
    return len(json.dumps(stated)) + len(json.dumps(list(stated))) if stated else 0


@dataclass
class Ledger:
    """Append-only account of the model calls of a run, sub-calls included.  Safe to charge from threads."""

    calls: list[Call] = field(default_factory=list["Call"])
    _lock: OwnLock = field(default_factory=OwnLock, repr=False, compare=False)

    def charge(
        self, parts: Sequence[Part], usage: Usage, turn: int, depth: int, purpose: str, exact: bool = True, **about: Any
    ) -> Call:
        """Add one call; `about` are other fields of `Call`.

        Parts that do not sum to the usage are made to, with an `unattributed` one, and the call is not exact then.
        """
        reported = usage.input_tokens
        exact = exact and reported is not None and sum([part.tokens for part in parts]) == reported
        with self._lock:
            call = Call(len(self.calls) + 1, turn, depth, purpose, usage, tuple(parts), exact, **about)
            self.calls.append(call)
            return call

    @property
    def usage(self) -> Usage:
        """Sum of all calls."""
        return sum([call.usage for call in list(self.calls)], Usage.NOTHING)

    def usage_of(self, node: str) -> Usage:
        """Sum of the calls of a caller, given by its path, and of all below it."""
        return sum([c.usage for c in list(self.calls) if f"{c.node}.".startswith(f"{node}.")], Usage.NOTHING)

    @property
    def rows(self) -> list[Row]:
        return [row for call in list(self.calls) for row in call.rows]

    def by_cause(self) -> dict[str, int]:
        """Input tokens by cause, over all calls; causes in the order in which they came."""
        total: Counter[str] = Counter()
        for row in self.rows:
            total[row.cause] += row.tokens
        return dict(total)

    @property
    def scaffold_tokens(self) -> int:
        """Input tokens that a strategy added: system text and injectors, each time they were sent."""
        return sum(n for cause, n in self.by_cause().items() if cause == "system" or cause.startswith("scaffold:"))

    @property
    def counting(self) -> str:
        """The least sure way in which tokens were counted, one of `COUNTING`; empty without a call.

        They sum to the provider's own number all the same.
        """
        ways = [0 if c.exact else 2 if c.counted is None else 1 for c in list(self.calls)]
        return COUNTING[max(ways)] if ways else ""

    def usage_warnings(self) -> list[str]:
        """Return a line for each call whose provider reported no usage, or one that cannot be."""
        return [f"call {call.call}: {call.usage_warning}" for call in list(self.calls) if call.usage_warning]

    def frame(self) -> pd.DataFrame:
        """A tidy frame, one row per call x cause x turn of origin; `tokens` sums to `usage.input_tokens`."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows], columns=[f.name for f in fields(Row)])

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.report.notebook.html.ledger_html")(self)
