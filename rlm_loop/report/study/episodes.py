"""Every episode: a row a task, a column an arm, each mark a link to the page of its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rlm_loop.report.run.judged import state
from rlm_loop.report.study.missing import arms_of, planned
from rlm_loop.study import Results
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.results import PairKey, pair_key
from rlm_loop.study.store.rows import Row

_SHOWN = {"resolved": "✓", "not resolved": "✗", "not judged": "?", "crashed": "crashed", "not run": "–"}


class EpisodeCell(NamedTuple):
    """One episode: its state and the mark of it, the words for both, the address of its page, and its tokens."""

    state: str
    mark: str
    said: str
    link: str = ""
    tokens: str = ""


class TaskRow(NamedTuple):
    """The episodes of a task, arm by arm; `apart` where the arms did not all come to the same state."""

    name: str
    apart: bool
    cells: Sequence[EpisodeCell]


class Episodes(NamedTuple):
    """The table: a group of tasks for each suite (and model), under the names of the arms."""

    arms: Sequence[str]
    groups: Sequence[tuple[str, Sequence[TaskRow]]]
    legend: str


def episodes_of(results: Results, links: Mapping[str, str]) -> Episodes:
    """All units of the study; `links` are addresses of trace pages by the name of the trace."""
    rows = {(row["arm"], pair_key(row)): row for row in results.rows}
    arms, units = arms_of(results), sorted(planned(results), key=lambda u: (u[0], u[1]))
    groups = [
        (f"{model} · {suite}" if len(results.models) > 1 else suite, _tasks(list(of), arms, rows, links))
        for (model, suite), of in groupby(units, key=lambda u: (u[0], u[1]))
    ]
    legend = ", ".join(f"{mark} {state}" for state, mark in _SHOWN.items() if mark != state)
    traces = " A mark leads to the page of its run." if links else ""
    return Episodes(arms, groups, f"{legend}; beside it the tokens, in and out together.{traces}")


def _tasks(
    units: Sequence[PairKey], arms: Sequence[str], rows: Mapping[tuple[str, PairKey], Row], links: Mapping[str, str]
) -> list[TaskRow]:
    several = len({seed for *_, seed in units}) > 1
    found: list[TaskRow] = []
    for of in units:
        cells = [_shown(rows.get((arm, of)), arm, of[2], links) for arm in arms]
        name = f"{of[2]}, seed {of[3]}" if several else of[2]
        found.append(TaskRow(name, len({cell.state for cell in cells}) > 1, cells))
    return found


def _shown(row: Row | None, arm: str, task: str, links: Mapping[str, str]) -> EpisodeCell:
    now = state(row)
    mark = _SHOWN[now]
    if row is None:
        return EpisodeCell(now, mark, f"{arm}: not run")
    tokens = total_tokens(row)
    said = f"{arm} on {task}: {now}; {_figures(row, tokens)}"
    return EpisodeCell(now, mark, said, links.get(row["trace"], ""), "" if tokens is None else f"{tokens:,}")


def _figures(row: Mapping[str, Any], tokens: int | None) -> str:
    parts = [
        str(row["error"]) if row["error"] else str(row["stop"]),
        f"{row['steps']} steps",
        f"{tokens:,} tokens" if tokens is not None else "tokens not known",
        f"{row['seconds']:.1f} s",
        str(row.get("score_reason") or ""),
    ]
    return ", ".join(part for part in parts if part)
