"""Every episode: a row a task, a column an arm, each mark a link to the page of its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rlm_loop.report.run.judged import state
from rlm_loop.report.study.planned import arms_of, planned
from rlm_loop.study import Results
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.results import PairKey, pair_key
from rlm_loop.study.store.rows import Row

_MARKS = {"resolved": "✓", "not resolved": "✗", "not judged": "?", "crashed": "crashed", "not run": "–"}
LEGEND = ", ".join(f"{mark} {state}" for state, mark in _MARKS.items() if mark != state)


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
    caption: str = "Episodes"


def episodes_of(results: Results, links: Mapping[str, str]) -> Episodes:
    """All units of the study; `links` are addresses of trace pages by the name of the trace."""
    rows = {(row["arm"], pair_key(row)): row for row in results.rows}
    arms, units = arms_of(results), sorted(planned(results), key=lambda u: (u[0], u[1]))
    groups = [
        (f"{model} · {suite}" if len(results.models) > 1 else suite, _tasks(list(of), arms, rows, links))
        for (model, suite), of in groupby(units, key=lambda u: (u[0], u[1]))
    ]
    traces = " A mark leads to the page of its run." if links else ""
    return Episodes(arms, groups, f"{LEGEND}; beside it the tokens, in and out together.{traces}")


def task_name(unit: PairKey, seeds: bool) -> str:
    """The task of a unit, with its seed where there are several."""
    return f"{unit[2]}, seed {unit[3]}" if seeds else unit[2]


def _tasks(
    units: Sequence[PairKey], arms: Sequence[str], rows: Mapping[tuple[str, PairKey], Row], links: Mapping[str, str]
) -> list[TaskRow]:
    several = len({seed for *_, seed in units}) > 1
    found: list[TaskRow] = []
    for of in units:
        cells = [_shown(rows.get((arm, of)), arm, of[2], links) for arm in arms]
        found.append(TaskRow(task_name(of, several), len({cell.state for cell in cells}) > 1, cells))
    return found


def _shown(row: Row | None, arm: str, task: str, links: Mapping[str, str]) -> EpisodeCell:
    now = state(row)
    if row is None:
        return EpisodeCell(now, f"{arm}: not run")
    tokens = total_tokens(row)
    said = f"{arm} on {task}: {now}; {_figures(row, tokens)}"
    return EpisodeCell(now, said, links.get(row["trace"], ""), "" if tokens is None else f"{tokens:,}")


def _figures(row: Mapping[str, Any], tokens: int | None) -> str:
    parts = [
        str(row["error"]) if row["error"] else str(row["stop"]),
        f"{row['steps']} steps",
        f"{tokens:,} tokens" if tokens is not None else "tokens not known",
        f"{row['seconds']:.1f} s",
        str(row.get("score_reason") or ""),
    ]
    return ", ".join(part for part in parts if part)
