"""Every episode: a row a task, a column an arm, each mark a link to the page of its trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rlm_loop.report.run.judged import state
from rlm_loop.study import Results
from rlm_loop.study.compare.pair_keys import PairKey, pair_key
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.store.rows import Row

_MARKS = {"resolved": "✓", "not resolved": "✗", "not judged": "?", "crashed": "crashed", "not run": "–"}


class EpisodeCell(NamedTuple):
    """One episode: its state, the words for it, the address of its page, and its tokens."""

    state: str
    said: str
    link: str = ""
    tokens: str = ""

    @property
    def mark(self) -> str:
        return _MARKS[self.state]


class TaskRow(NamedTuple):
    """The episodes of a task, arm by arm; `apart` where the arms differ."""

    name: str
    apart: bool
    cells: Sequence[EpisodeCell]


class Episodes(NamedTuple):
    """The table: a group of tasks for each suite (and model), under the names of the arms."""

    arms: Sequence[str]
    groups: Sequence[tuple[str, Sequence[TaskRow]]]
    legend: str
    caption: str


def episodes_of(results: Results, links: Mapping[str, str]) -> Episodes:
    """All units of the study and its plan; `links` are addresses of trace pages by the name of the trace."""
    rows = {(row["arm"], pair_key(row)): row for row in results.rows}
    arms = list(dict.fromkeys([*results.arms, *results.lock.get("arms", {})]))
    units = sorted(_planned(results), key=lambda u: (u[0], u[1]))
    several = len({seed for *_, seed in units}) > 1
    groups: list[tuple[str, list[TaskRow]]] = []
    for (model, suite), of in groupby(units, key=lambda u: (u[0], u[1])):
        label = " · ".join(part for part in (model if len(results.models) > 1 else "", suite) if part)
        tasks: list[TaskRow] = []
        for unit in of:
            cells = [_shown(rows.get((arm, unit)), arm, unit[2], links) for arm in arms]
            name = f"{unit[2]}, seed {unit[3]}" if several else str(unit[2])
            tasks.append(TaskRow(name, len({cell.state for cell in cells}) > 1, cells))
        groups.append((label, tasks))
    apart = sum(task.apart for _, tasks in groups for task in tasks)
    legend = ", ".join(f"{mark} {name}" for name, mark in _MARKS.items() if mark != name)
    traces = " A mark leads to the page of its run." if links else ""
    return Episodes(
        arms,
        groups,
        f"{legend}; beside it the tokens, in and out together.{traces}",
        f"Episodes, {apart:,} where arms differ",
    )


def _planned(results: Results) -> list[PairKey]:
    """Every unit (model, suite, task, seed): those of the rows, then those of the plan without any."""
    there = dict.fromkeys(pair_key(row) for row in results.rows)
    tasks: Mapping[str, Mapping[str, Any]] = results.lock.get("tasks", {})
    for model in results.lock.get("models", ()):
        for suite, marks in tasks.items():
            for task in marks:
                there |= dict.fromkeys((model, suite, task, seed) for seed in results.lock.get("seeds", ()))
    return list(there)


def _shown(row: Row | None, arm: str, task: str, links: Mapping[str, str]) -> EpisodeCell:
    now = state(row)
    if row is None:
        return EpisodeCell(now, f"{arm}: not run")
    tokens = total_tokens(row)
    said = f"{arm} on {task}: {now}; {', '.join(filter(None, _facts(row, tokens)))}"
    return EpisodeCell(now, said, links.get(row.get("trace") or "", ""), "" if tokens is None else f"{tokens:,}")


def _facts(row: Mapping[str, Any], tokens: int | None) -> Iterator[str]:
    yield str(row.get("error") or row.get("stop") or "")
    if row.get("steps") is not None:
        yield f"{row['steps']} steps"
    yield f"{tokens:,} tokens" if tokens is not None else "tokens not known"
    if row.get("seconds") is not None:
        yield f"{row['seconds']:.1f} s"
    if row.get("cost"):
        yield f"${row['cost']:.4f}"
    yield str(row.get("score_reason") or "")
