"""The findings of a meter: each request, a tree of tokens, and tables, of a running meter or a recorded one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.ledger import Call, Ledger
from rlm_loop.agents.past_run import ledger_of
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import TraceError

if TYPE_CHECKING:
    import pandas as pd

_ROWS = ["session", "node", "call", "turn", "cause", "detail", "origin_turn", "tokens", "resent", "cached", "written"]


@dataclass
class MeteredCall:
    """A request to the meter, served or not.

    `call` is its number in the session's ledger (`None`: it was refused or the model failed, nothing was charged),
    `node` the conversation ("0" is the session's first, "0.1" the next beside it), `turn` the reply's number in it.
    `model_seconds` is the model's own time.  `harness_seconds` is the time of the framework: from the end of the
    session's reply before to the arrival of this request (0 where others were under way, `None` for the first).
    `meter_seconds` is what the meter itself took: reading, counting, waiting for a free model, writing.
    `delivered` is false where the client did not get the whole answer: the call is charged all the same.
    `unread` is why a request or reply that went through could not be read (its tokens are `unattributed` then),
    `not_applied` what the request asked for in vain (see `request.Request`).
    """

    session: str
    number: int
    protocol: str = ""
    node: str = "0"
    turn: int = 0
    call: int | None = None
    model: str = ""
    stream: bool = False
    status: int = 200
    error: str | None = None
    arrived: float = 0.0
    model_seconds: float = 0.0
    harness_seconds: float | None = None
    meter_seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    delivered: bool = True
    not_applied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unread: str = ""
    ended: float = field(default=0.0, compare=False)


_FIELDS = [one.name for one in fields(MeteredCall)]
_TIMES = [name for name in _FIELDS if name not in ("not_applied", "arrived", "ended")]
_MAYBE = {name: "Int64" for name in _TIMES if name == "call" or name.endswith("_tokens")}


@dataclass(frozen=True)
class Branch:
    """Input tokens of one line of the tree (agent, conversation, cause, detail); its children's sum to them.

    `first` are those of the first request, `total` those of all `requests`.  `resent` had been sent before, so a cache
    could have held them; `cached` and `written` are the provider's own figures (`None`: it does not say).
    """

    name: str
    requests: int
    first: int
    total: int
    resent: int
    cached: int | None
    written: int | None
    children: tuple[Branch, ...] = ()

    @property
    def per_turn(self) -> float | None:
        """Tokens of a request on average, the first left out; `None` where there was one only."""
        return (self.total - self.first) / (self.requests - 1) if self.requests > 1 else None

    @property
    def cacheable(self) -> float | None:
        """The share of the tokens that had been sent before."""
        return self.resent / self.total if self.total else None

    def lines(self, depth: int = 0) -> Iterator[tuple[int, Branch]]:
        """This branch and all below it, with how deep each is."""
        yield depth, self
        for child in self.children:
            yield from child.lines(depth + 1)


@dataclass(frozen=True)
class Figures:
    """Ledger and requests of each session, by name."""

    sessions: Mapping[str, tuple[Ledger, Sequence[MeteredCall]]]

    @property
    def calls(self) -> list[MeteredCall]:
        """Every request that was answered, refused ones included, session by session."""
        return [call for _, calls in self.sessions.values() for call in calls]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of `frame`."""
        for name, (ledger, _) in self.sessions.items():
            for call in list(ledger.calls):
                for row in call.rows:
                    yield {"session": name, "node": call.node, **{k: getattr(row, k) for k in _ROWS[2:]}}

    def frame(self) -> pd.DataFrame:
        """Return a row per call x cause x turn of origin; a call's `tokens` sum to the input tokens it was charged."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()), columns=_ROWS)

    def times(self) -> pd.DataFrame:
        """Return one row per request: what it cost, and the time of the model, of the framework and of the meter."""
        import pandas as pd

        rows = [[getattr(call, name) for name in _TIMES] for call in self.calls]
        return pd.DataFrame(rows, columns=_TIMES).astype(_MAYBE)

    def trees(self) -> list[Branch]:
        """Return a tree for each session: conversation, cause, detail; with first request, each turn and total."""
        return [_tree(name, ledger, calls) for name, (ledger, calls) in self.sessions.items()]


def read_meter(path: str | Path) -> Figures:
    """The figures of the traces that a meter wrote: a folder of them, or one file.

    Of a file that several runs of the meter were appended to, the last one counts.  Raises `TraceError` for a path
    without traces.
    """
    place = Path(path)
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not files:
        raise TraceError(f"{place} holds no traces; name the folder that the meter wrote to")
    sessions: dict[str, Any] = {}
    for file in files:
        record = read(file)
        name = str(record.start.get("settings", {}).get("session", file.stem))
        # by arrival: a refusal can be written down before the answer that was sent just before it
        events: list[dict[str, Any]] = [{**event, "session": name} for event in record.of("metered")]
        calls = [MeteredCall(**{k: v for k, v in event.items() if k in _FIELDS}) for event in events]
        calls.sort(key=lambda call: call.number)
        sessions[name] = ledger_of(record), calls
    return Figures(sessions)


def _tree(name: str, ledger: Ledger, calls: Sequence[MeteredCall]) -> Branch:
    """Return the tree of one session."""
    models = {call.call: call.model for call in calls if call.call is not None}
    nodes: dict[str, list[Call]] = {}
    for call in list(ledger.calls):
        nodes.setdefault(call.node, []).append(call)
    found = [_conversation(node, made, models) for node, made in nodes.items()]
    whole = _branch(name, sum(one.requests for one in found), [((), one) for one in found])
    return replace(whole, first=found[0].first if found else 0, children=tuple(found))


def _conversation(node: str, calls: Sequence[Call], models: Mapping[int, str]) -> Branch:
    parts: list[tuple[tuple[str, ...], Branch]] = []
    for call in calls:
        for row in call.rows:
            first = row.tokens if call is calls[0] else 0
            sums = (first, row.tokens, row.resent, row.cached, row.written)
            parts.append(((row.cause, row.detail or "(other)"), Branch("", 1, *sums)))
    names = sorted({models[call.call] for call in calls if models.get(call.call)})
    tools = len({names for names, _ in parts if names[:1] == ("tool_schema",)})
    return _branch(f"{node}: {', '.join(names) or 'model not named'}, {tools or 'no'} tools", len(calls), parts)


def _branch(name: str, requests: int, parts: Sequence[tuple[tuple[str, ...], Branch]]) -> Branch:
    """Return the sum of the parts, and below it a branch for each of the names that they begin with, the largest first.

    What is not known of one part is not known of all.
    """
    below: dict[str, list[tuple[tuple[str, ...], Branch]]] = {}
    for names, part in parts:
        if names:
            below.setdefault(names[0], []).append((names[1:], part))
    children = [_branch(child, requests, own) for child, own in below.items()]
    sums: list[Any] = []
    for column in ("first", "total", "resent", "cached", "written"):
        values: list[Any] = [getattr(part, column) for _, part in parts]
        sums.append(None if None in values else sum(values))
    told = [] if [one.name for one in children] == ["(other)"] else sorted(children, key=lambda one: -one.total)
    return Branch(name, requests, *sums, children=tuple(told))
