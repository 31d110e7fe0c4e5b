"""The findings of a meter: each request, a tree of tokens, and tables, of a running meter or a recorded one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlm_loop.accounting.ledger import Call, Ledger
from rlm_loop.accounting.prices import known_price
from rlm_loop.agents.past_run import ledger_of
from rlm_loop.messages import Usage
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import TraceError

if TYPE_CHECKING:
    import pandas as pd

_ROWS = ["session", "node", "call", "turn", "cause", "detail", "origin_turn", "tokens", "resent", "cached", "written"]
_TIMES = [
    *("session", "number", "call", "node", "turn", "status", "model_seconds", "harness_seconds", "meter_seconds"),
    *("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "delivered", "error"),
]
_MAYBE = {name: "Int64" for name in _TIMES if name == "call" or name.endswith("_tokens")}


@dataclass
class MeteredCall:
    """A request to the meter, served or not.

    `call` is its number in the session's ledger (`None`: it was refused or the model failed, nothing was charged),
    `node` the conversation ("0" is the session's first, "0.1" the next beside it), `turn` the reply's number in it.
    `model_seconds` is the model's own time.  `harness_seconds` is the time of the framework: from the end of the
    session's reply before to the arrival of this request (0 where others were under way, `None` for the first).
    `meter_seconds` is what the meter itself took: reading, counting, waiting for a free model, writing.
    `delivered` is false where the client had hung up: the call is charged all the same.
    `first_byte_seconds` is the time from the arrival to the first byte of a provider's answer, `unread` why a request
    or reply that went through could not be read (its tokens are `unattributed` then).
    `not_applied` is what the request asked for in vain (see `request.Request`).
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
    first_byte_seconds: float | None = None
    unread: str = ""
    ended: float = field(default=0.0, compare=False)


_FIELDS = {one.name for one in fields(MeteredCall)}
Kind = Literal["agent", "conversation", "cause", "detail"]


@dataclass(frozen=True)
class Branch:
    """Input tokens of one line of the tree; its children's, where it has any, sum to them.

    `first` are those of the first request, `total` those of all `requests`.  `resent` had been sent before, so a cache
    could have held them; `cached` and `written` are the provider's own figures (`None`: it does not say).  `dollars`
    are what they cost, with the output of agents and conversations (`None`: no table has the price).
    """

    name: str
    kind: Kind
    requests: int
    first: int
    total: int
    resent: int
    cached: int | None
    written: int | None
    dollars: float | None
    output: int | None = None
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
    whole = _sum(name, "agent", sum(b.requests for b in found), found, found)
    return replace(whole, first=found[0].first if found else 0)


def _conversation(node: str, calls: Sequence[Call], models: Mapping[int, str]) -> Branch:
    leaves: list[tuple[str, Branch]] = []
    spent: list[Branch] = []
    for call in calls:
        model, out = models.get(call.call, ""), call.usage.output_tokens
        provider, slash, _ = model.partition("/")  # an address that is no provider's has no price, and none of ours
        price = known_price(model) if slash and not {".", ":"} & {*provider} else None
        for row in call.rows:
            read = Usage(row.tokens, 0, row.cached, cache_write_tokens=row.written)
            first, dollars = row.tokens if call is calls[0] else 0, None if price is None else price.of(read)
            sums = (first, row.tokens, row.resent, row.cached, row.written, dollars, 0)
            leaves.append((row.cause, Branch(row.detail or "(other)", "detail", len(calls), *sums)))
        dollars = None if price is None or out is None else out * price.output / 1e6
        spent.append(Branch("output", "detail", 1, 0, 0, 0, 0, 0, dollars, out))
    names = sorted({models[call.call] for call in calls if models.get(call.call)})
    tools = len({leaf.name for cause, leaf in leaves if cause == "tool_schema"})
    title = f"{node}: {', '.join(names) or 'model not named'}, {tools or 'no'} tools"
    causes = [_sum(cause, "cause", len(calls), own, _details(own)) for cause, own in _grouped(leaves)]
    return _sum(title, "conversation", len(calls), [*(leaf for _, leaf in leaves), *spent], causes)


def _details(leaves: Sequence[Branch]) -> list[Branch]:
    """Return the details of a cause; none where nothing has one."""
    found = [_sum(name, "detail", own[0].requests, own) for name, own in _grouped([(one.name, one) for one in leaves])]
    return [] if [one.name for one in found] == ["(other)"] else found


def _grouped(named: Sequence[tuple[str, Branch]]) -> list[tuple[str, list[Branch]]]:
    """Branches by name, those with the most tokens first."""
    groups: dict[str, list[Branch]] = {}
    for name, one in named:
        groups.setdefault(name, []).append(one)
    return sorted(groups.items(), key=lambda item: -sum(one.total for one in item[1]))


def _sum(name: str, kind: Kind, requests: int, parts: Sequence[Branch], children: Sequence[Branch] = ()) -> Branch:
    """The parts together; what is not known of one is not known of all."""
    sums: list[Any] = []
    for column in ("first", "total", "resent", "cached", "written", "dollars", "output"):
        values: list[Any] = [getattr(part, column) for part in parts]
        sums.append(None if None in values else sum(values))
    return Branch(name, kind, requests, *sums, children=tuple(children))
