"""A meter's findings as a tree: agent, conversation, cause, detail (a tool, the tag of a block)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rlm_loop.accounting.attribution import Row
from rlm_loop.accounting.ledger import Call, Ledger
from rlm_loop.accounting.prices import Price, known_price
from rlm_loop.meter.exchange import MeteredCall

Kind = Literal["agent", "conversation", "cause", "group", "detail"]


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
    def later(self) -> int:
        """Tokens of all requests but the first."""
        return self.total - self.first

    @property
    def per_turn(self) -> float | None:
        """Tokens of a request on average, the first left out; `None` where there was one only."""
        return self.later / (self.requests - 1) if self.requests > 1 else None

    @property
    def cacheable(self) -> float | None:
        """The share of the tokens that had been sent before."""
        return self.resent / self.total if self.total else None

    def lines(self, depth: int = 0) -> Iterator[tuple[int, Branch]]:
        """This branch and all below it, with how deep each is."""
        yield depth, self
        for child in self.children:
            yield from child.lines(depth + 1)


def tree_of_session(name: str, ledger: Ledger, calls: Sequence[MeteredCall]) -> Branch:
    """The tree of one agent (a session of the meter)."""
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
        price, out = _price(models.get(call.call, "")), call.usage.output_tokens
        leaves += [(row.cause, _leaf(row, call is calls[0], len(calls), price)) for row in call.rows]
        dollars = None if price is None or out is None else out * price.output / 1e6
        spent.append(Branch("output", "detail", 1, 0, 0, 0, 0, 0, dollars, out))
    names = sorted({models[call.call] for call in calls if models.get(call.call)})
    tools = len({leaf.name for cause, leaf in leaves if cause == "tool_schema"})
    title = f"{node}: {', '.join(names) or 'model not named'}, {tools or 'no'} tools"
    return _sum(title, "conversation", len(calls), [*(leaf for _, leaf in leaves), *spent], _causes(leaves))


def _leaf(row: Row, first: bool, requests: int, price: Price | None) -> Branch:
    dollars = None if price is None else price.of_input(row.tokens, row.cached or 0, row.written or 0)
    sums = (row.tokens if first else 0, row.tokens, row.resent, row.cached, row.written, dollars, 0)
    return Branch(row.detail, "detail", requests, *sums)


def _causes(leaves: Sequence[tuple[str, Branch]]) -> list[Branch]:
    found: list[Branch] = []
    for cause, own in _grouped(leaves):
        details = [
            _sum(name or "(other)", "detail", own[0].requests, of_it)
            for name, of_it in _grouped([(leaf.name, leaf) for leaf in own])
        ]
        plain = [one.name for one in details] == ["(other)"]
        found.append(_sum(cause, "cause", own[0].requests, own, () if plain else _servers(details)))
    return found


def _servers(details: Sequence[Branch]) -> list[Branch]:
    """Two or more tools of one MCP server under one branch."""
    groups = _grouped([(server_prefix(one.name) or one.name, one) for one in details])
    return [own[0] if len(own) == 1 else _sum(f"{name}*", "group", own[0].requests, own, own) for name, own in groups]


def server_prefix(tool: str) -> str:
    """Return what agents put before the name of an MCP server's tool, else "": `mcp__github__`, `mcp_github_`.

    One underscore after a plain word (`read_file`) is part of a name.
    """
    head, mark, _ = tool.rpartition("__")
    if mark:
        return head + mark
    found = re.match(r"mcp_[^_]+_(?=.)", tool)
    return found[0] if found else ""


def _grouped(named: Sequence[tuple[str, Branch]]) -> list[tuple[str, list[Branch]]]:
    """Branches by name, those with the most tokens first."""
    groups: dict[str, list[Branch]] = {}
    for name, one in named:
        groups.setdefault(name, []).append(one)
    return sorted(groups.items(), key=lambda item: -sum(one.total for one in item[1]))


def _sum(name: str, kind: Kind, requests: int, parts: Sequence[Branch], children: Sequence[Branch] = ()) -> Branch:
    """The parts together; what is not known of one is not known of all."""
    sums: list[Any] = []
    for field in ("first", "total", "resent", "cached", "written", "dollars", "output"):
        values: list[Any] = [getattr(part, field) for part in parts]
        sums.append(None if None in values else sum(values))
    return Branch(name, kind, requests, *sums, children=tuple(children))


def _price(model: str) -> Price | None:
    """The price of a provider's model; models of ours have none here."""
    return known_price(model) if "/" in model else None
