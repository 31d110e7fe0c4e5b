"""Every episode: a row a task, a column an arm, each cell a link to the page of its trace."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rlm_loop.report.study.missing import arms_of, planned
from rlm_loop.report.study.parts import small
from rlm_loop.report.templates import safe
from rlm_loop.study import Results
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.results import PairKey, pair_key
from rlm_loop.study.store.rows import Row, finished

_SHOWN = {"resolved": "✓", "not resolved": "✗", "not judged": "?", "crashed": "crashed", "not run": "–"}


def episodes(results: Results, links: Mapping[str, str]) -> str:
    """The table of all units; `links` are addresses of trace pages by the name of the trace."""
    rows = {(row["arm"], pair_key(row)): row for row in results.rows}
    arms, units = arms_of(results), sorted(planned(results), key=lambda u: (u[0], u[1]))
    if not rows:
        return ""
    groups = "".join(
        _group(f"{model} · {suite}" if len(results.models) > 1 else suite, list(of), arms, rows, links)
        for (model, suite), of in groupby(units, key=lambda u: (u[0], u[1]))
    )
    head = "".join(f'<th scope="col">{safe(arm)}</th>' for arm in arms)
    legend = ", ".join(f"{mark} {state}" for state, mark in _SHOWN.items() if mark != state)
    traces = " A mark leads to the page of its run." if links else ""
    return (
        '<div class="find" role="search" aria-label="Find a task">'
        '<input id="find" type="search" placeholder="Find a task  ( / )" aria-label="Find a task" autocomplete="off" '
        'spellcheck="false" aria-describedby="found">'
        '<label><input id="apart" type="checkbox"> only where arms differ</label>'
        '<output id="found" for="find apart" aria-live="polite"></output></div>'
        f'<div class="wide" tabindex="0" role="region" aria-label="Episodes"><table class="data episodes">'
        f'<caption>Episodes</caption><thead><tr><th scope="col">task</th>{head}</tr></thead>{groups}</table></div>'
        + small(f"{legend}; beside it the tokens, in and out together.{traces}")
    )


def _group(
    label: str, units: list[PairKey], arms: list[str], rows: Mapping[tuple[str, PairKey], Row], links: Mapping[str, str]
) -> str:
    several = len({seed for *_, seed in units}) > 1
    body: list[str] = []
    for of in units:
        mine = [rows.get((arm, of)) for arm in arms]
        apart = len({state(row) for row in mine}) > 1
        name = f"{of[2]}, seed {of[3]}" if several else of[2]
        cells = "".join(_cell(row, arm, of[2], links) for row, arm in zip(mine, arms, strict=True))
        body.append(f'<tr class="unit{" apart" if apart else ""}"><th scope="row">{safe(name)}</th>{cells}</tr>')
    head = f'<tr class="suite"><th scope="colgroup" colspan="{len(arms) + 1}">{safe(label)}</th></tr>'
    return f"<tbody>{head}{''.join(body)}</tbody>"


def state(row: Row | None) -> str:
    """What became of an episode, in the words of the legend."""
    if row is None:
        return "not run"
    if not finished(row):
        return "crashed"
    return "not judged" if row["resolved"] is None else "resolved" if row["resolved"] else "not resolved"


def _cell(row: Row | None, arm: str, task: str, links: Mapping[str, str]) -> str:
    now = state(row)
    kind, mark = now.replace(" ", "-"), _SHOWN[now]
    if row is None:
        return f'<td class="{kind}"><span title="{safe(arm)}: not run">{mark}</span></td>'
    tokens = total_tokens(row)
    said = safe(f"{arm} on {task}: {now}; {_figures(row, tokens)}")
    link = links.get(row["trace"])
    marked = (
        f'<a href="{safe(link)}" title="{said}" aria-label="{said}">{mark}</a>'
        if link
        else f'<span title="{said}">{mark}</span>'
    )
    return f'<td class="{kind}">{marked}{f" <small>{tokens:,}</small>" if tokens is not None else ""}</td>'


def _figures(row: Mapping[str, Any], tokens: int | None) -> str:
    parts = [
        str(row["error"]) if row["error"] else str(row["stop"]),
        f"{row['steps']} steps",
        f"{tokens:,} tokens" if tokens is not None else "tokens not known",
        f"{row['seconds']:.1f} s",
        str(row.get("score_reason") or ""),
    ]
    return ", ".join(part for part in parts if part)
