"""From rows to the tables of README.md and tables.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contenders import CONTENDERS

Row = Mapping[str, Any]
LOOPS = {one.name: one.loop for one in CONTENDERS}


@dataclass(frozen=True)
class Overhead:
    """Scaffold tokens of one session: at the first call, per later turn (a mean), and summed over all calls; the tool
    schemas of one call; `billed` are all input tokens."""

    first: int
    per_turn: float
    total: int
    schema: int
    billed: int


def overhead(row: Row) -> Overhead:
    """The figures of a whole session.

    The growth is taken from the first to the last action's call, so that an extra call at the end does not count
    in it; the sums count every call.
    """
    scaffold, turns = row["tokens"]["scaffold"], row["turns"]
    return Overhead(
        first=scaffold[0],
        per_turn=(scaffold[turns] - scaffold[0]) / turns,
        total=sum(scaffold),
        schema=row["tokens"]["tool_schema"][0],
        billed=sum(row["billed"]),
    )


def whole(row: Row) -> str:
    """Why a row is no whole session; empty if it is."""
    if row["error"]:
        return str(row["error"])
    if row["calls"] <= row["turns"]:
        return f"it stopped after {row['calls']} calls"
    return "; ".join(row["unfound"]) or ("" if row["agrees"] else "the parts do not sum to the bill")


def overhead_table(rows: Sequence[Row]) -> str:
    """The table of the scripted session, in Markdown."""
    lines = [
        "| loop | scaffold, turn 1 | a turn | billed in total | tool schemas a call | all input tokens |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        name = LOOPS.get(row["peer"], row["peer"])
        if problem := whole(row):
            lines.append(f"| {name} | {problem} | | | | |")
            continue
        o = overhead(row)
        lines.append(f"| {name} | {o.first:,} | {o.per_turn:.0f} | {o.total:,} | {o.schema:,} | {o.billed:,} |")
    return "\n".join(lines)


def times_table(rows: Sequence[Row]) -> str:
    """Milliseconds of harness a turn, the fastest first."""
    good = sorted((row for row in rows if not row["error"]), key=lambda row: row["median"])
    lines = ["| loop | median, ms a turn | middle half | least |", "|---|---:|---:|---:|"]
    for row in good:
        name = LOOPS.get(row["peer"], row["peer"])
        lines.append(f"| {name} | {row['median']:.1f} | {row['low']:.1f} to {row['high']:.1f} | {row['least']:.1f} |")
    lines += [f"| {LOOPS.get(row['peer'], row['peer'])} | {row['error']} | | |" for row in rows if row["error"]]
    return "\n".join(lines)


def tasks_table(rows: Sequence[Row]) -> str:
    """What each loop resolved with the local model, and what it spent, suite by suite."""
    lines = [
        "| loop | suite | resolved | answered | input tokens a task | output tokens a task | calls a task |"
        " failed runs |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["suite"], row["peer"]), []).append(row)
    order = {name: number for number, name in enumerate(LOOPS)}
    for suite, peer in sorted(groups, key=lambda key: (key[0], order.get(key[1], len(order)))):
        of = groups[suite, peer]
        sent, got, calls = (sum(row[key] for row in of) / len(of) for key in ("input_tokens", "output_tokens", "calls"))
        resolved, answered = sum(bool(row["resolved"]) for row in of), sum(row["answered"] for row in of)
        failed = sum(bool(row["error"]) for row in of)
        lines.append(
            f"| {LOOPS.get(peer, peer)} | {suite} | {resolved} of {len(of)} | {answered} | {sent:,.0f} | {got:,.0f} |"
            f" {calls:.1f} | {failed} |"
        )
    return "\n".join(lines)
