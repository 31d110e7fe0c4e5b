"""The tables of tables.md, of the first page and of docs, and the figures, from `results/` alone.

python experiments/harness_tax/figures.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # it is not installed

from rlm_loop.report import write_between
from rlm_loop.report.figures import cause_colour, marks, style
from rlm_loop.report.figures.style import HATCHES, SMALL, caption, finish, legend_above, sheet

HERE = Path(__file__).resolve().parent
Row = Mapping[str, Any]

#: What a token read from a cache and one written to it cost beside a new one, as the two price lists have it; on a
#: machine of one's own what is held is not computed again.
RATES = {"openai": (0.1, 1.0), "anthropic": (0.1, 1.25), "llama.cpp": (0.0, 1.0)}

#: What is drawn as one: the groups of causes, and what belongs to each.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "system text": ("system",),
    "tool schemas": ("tool_schema",),
    "reminders": ("scaffold:reminder", "scaffold:repeated", "scaffold:echo"),
    "around the task": ("scaffold:around",),
    "environment": ("scaffold:environment",),
    "memory file": ("scaffold:memory",),
    "the task": ("task",),
    "calls and results": ("assistant", "tool_result", "user"),
    "template": ("template",),
}
COLOURS = {
    "system text": cause_colour("system"),
    "tool schemas": cause_colour("tool_schema"),
    "reminders": "#A8123E",
    "around the task": "#E0457B",
    "environment": "#F0776B",
    "memory file": "#7B61B8",
    "the task": cause_colour("task"),
    "calls and results": cause_colour("tool_result"),
    "template": cause_colour("template"),
}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / "results" / name).read_text().splitlines()]


def grouped(causes: Mapping[str, int]) -> dict[str, int]:
    """Tokens by group; what belongs to none is an error, so that nothing is left out of a figure."""
    whose = {cause: group for group, members in GROUPS.items() for cause in members}
    found = dict.fromkeys(GROUPS, 0)
    for cause, tokens in causes.items():
        found[whose[cause]] += tokens
    return found


class Found:
    """The rows of the study, by agent, condition and turns."""

    def __init__(self, runs: Sequence[Row], requests: Sequence[Row]) -> None:
        self.runs = {(r["agent"], r["condition"], r["turns"]): r for r in runs if not r["error"]}
        self.why = {(r["agent"], r["condition"], r["turns"]): r["error"] for r in runs if r["error"]}
        self.labels = {r["agent"]: r["label"] for r in runs}
        self._requests = requests

    def requests(self, agent: str, condition: str = "bare", turns: int = 10) -> list[Row]:
        who = (agent, condition, turns)
        return [r for r in self._requests if (r["agent"], r["condition"], r["turns"]) == who]

    def first(self, agent: str, condition: str = "bare") -> Row | None:
        return next((r for r in self.requests(agent, condition) if r["main"]), None)

    def by_first(self) -> list[str]:
        """The agents by the size of their first request, the largest first."""
        sizes = {agent: one["input_tokens"] for agent in self.labels if (one := self.first(agent)) is not None}
        return sorted(sizes, key=lambda agent: -sizes[agent])


def first_table(found: Found) -> str:
    head = "| agent | version | first request | system | tool schemas (tools) | reminders | around the task |"
    head += " environment | the task |"
    lines = [head, "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for agent in found.by_first():
        run, first = found.runs[agent, "bare", 10], found.first(agent)
        assert first is not None
        of = grouped(first["causes"])
        tools = f"{of['tool schemas']:,} ({len(run['tools'])})" if run["tools"] else "0"
        share = f"{of['the task']} ({of['the task'] / first['input_tokens']:.1%})"
        figures = [f"{first['input_tokens']:,}", f"{of['system text']:,}", tools, f"{of['reminders']:,}"]
        figures += [f"{of['around the task']:,}", f"{of['environment']:,}", share]
        lines.append(f"| {found.labels[agent]} | {run['version']} | {' | '.join(figures)} |")
    return "\n".join(lines)


def total_table(found: Found) -> str:
    head = "| agent | a turn adds | sent in 10 turns | in 25 turns | of it sent before | other requests (25 turns) |"
    lines = [f"{head} memory file adds | ten MCP tools add |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for agent in found.by_first():
        ten, many = found.requests(agent), found.requests(agent, turns=25)
        main, beside = [r for r in many if r["main"]], [r for r in many if not r["main"]]
        if not main:
            continue
        grows = (main[-1]["input_tokens"] - main[0]["input_tokens"]) / (len(main) - 1)
        total = sum(r["input_tokens"] for r in many)
        more = f"{len(beside)} ({sum(r['input_tokens'] for r in beside):,} tokens)" if beside else "0"
        figures = [f"{grows:,.0f}", f"{sum(r['input_tokens'] for r in ten):,}", f"{total:,}"]
        figures += [f"{sum(r['resent'] for r in many) / total:.1%}", more]
        figures += [_added(found, agent, "memory"), _added(found, agent, "mcp")]
        lines.append(f"| {found.labels[agent]} | {' | '.join(figures)} |")
    return "\n".join(lines)


def _added(found: Found, agent: str, condition: str) -> str:
    """Tokens that a condition adds to the first request."""
    plain, other = found.first(agent), found.first(agent, condition)
    if plain is None or other is None:
        return f"({found.why.get((agent, condition, 10), 'not run')})"
    return f"{other['input_tokens'] - plain['input_tokens']:,}"


def cache_table(found: Found) -> str:
    head = (
        "| agent | held by openai | anthropic | llama.cpp | billed like new: openai | anthropic | llama.cpp | breaks |"
    )
    head += " another task elsewhere: the same from the start | first text that differs |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    for agent in found.by_first():
        many = found.requests(agent, turns=25)
        if not many:
            continue
        total = sum(r["input_tokens"] for r in many)
        shares = [f"{sum(r['hits'][name] for r in many) / total:.1%}" for name in ("openai", "anthropic", "llama.cpp")]
        shares += [f"{sum(_billed(r, name) for r in many):,.0f}" for name in RATES]
        breaks = len(found.runs[agent, "bare", 25]["breaks"])
        common = (found.runs.get((agent, "elsewhere", 10)) or {}).get("common")
        said = f"{common['tokens']:,} of {common['of']:,} | `{common['broken_by']}`" if common else "not run |"
        lines.append(f"| {found.labels[agent]} | {' | '.join(shares)} | {breaks} | {said} |")
    return "\n".join(lines)


#: The rows of the README: from the most to the least that is sent.
SHORT = ("qwen_code", "claude_code", "pi", "mellea", "tool_loop_agent")


def short_table(found: Found) -> str:
    """Return the first page's table: five agents, the first request, and all requests of 25 turns."""
    lines = ["| agent | first request | of it the task | requests of 25 turns together |", "|---|---:|---:|---:|"]
    for agent in SHORT:
        first, many = found.first(agent), found.requests(agent, turns=25)
        if first is not None and many:
            task, whole = grouped(first["causes"])["the task"], first["input_tokens"]
            together = sum(request["input_tokens"] for request in many)
            lines.append(f"| {found.labels[agent]} | {whole:,} | {task / whole:.1%} | {together:,} |")
    return "\n".join(lines)


def page_table(found: Found) -> str:
    """The short table of the docs page."""
    head = "| agent | first request | of it tools | the task | 25 turns | billed like new | the same elsewhere |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|"]
    for agent in found.by_first():
        first, many = found.first(agent), found.requests(agent, turns=25)
        common = (found.runs.get((agent, "elsewhere", 10)) or {}).get("common")
        if first is None or not many or not common:
            continue
        of, whole = grouped(first["causes"]), first["input_tokens"]
        figures = [f"{whole:,}", f"{of['tool schemas'] / whole:.0%}", f"{of['the task'] / whole:.1%}"]
        figures += [f"{sum(r['input_tokens'] for r in many):,}", f"{sum(_billed(r, 'anthropic') for r in many):,.0f}"]
        figures.append(f"{common['tokens'] / common['of']:.0%}")
        lines.append(f"| {found.labels[agent]} | {' | '.join(figures)} |")
    return "\n".join(lines)


def _billed(request: Row, name: str) -> float:
    """What a request costs in tokens at the full price."""
    hit, written = request["hits"][name], request["written"][name]
    read, write = RATES[name]
    return hit * read + written * write + (request["input_tokens"] - hit - written)


def first_figure(found: Found) -> Any:
    """The first request of each agent by cause."""
    order = found.by_first()
    with style():
        made = sheet(8.2, 1.9 + 0.38 * len(order))
        axes: Any = made.subplots()
        _bars(axes, {found.labels[a]: grouped((found.first(a) or {})["causes"]) for a in order}, "first")
        finish(axes, "What an agent sends with a task of 27 tokens", "tokens of the first request", grid="x")
        legend_above(made, axes.get_legend_handles_labels()[0], across=4)
        caption(
            made,
            "The same small task for all, bare: no memory file, no MCP server. The agents are as released, with their "
            "defaults. Counted with Qwen2.5's tokenizer and template for all; providers count a little differently.",
        )
    return made


def _bars(axes: Any, bars: Mapping[str, Mapping[str, int]], what: str) -> None:
    ends = dict.fromkeys(bars, 0.0)
    drawn = [group for group in GROUPS if any(of[group] for of in bars.values())]
    for number, group in enumerate(drawn):
        widths = [of[group] for of in bars.values()]
        look = {"color": COLOURS[group], "edgecolor": "white", "hatch": HATCHES[number % len(HATCHES)]}
        axes.barh(list(bars), widths, left=list(ends.values()), height=0.72, label=group, linewidth=0.6, **look)
        ends = {name: end + width for (name, end), width in zip(ends.items(), widths, strict=True)}
    longest = max(ends.values())
    for place, end in enumerate(ends.values()):
        axes.text(end + 0.008 * longest, place, f"{end:,.0f}", va="center", fontsize=SMALL)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, longest * 1.1)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="y", length=0)


def growth_figure(found: Found) -> Any:
    """How requests grow, where all tokens of 25 turns go, and what two sessions share."""
    order = [a for a in found.by_first() if found.requests(a, turns=25)]
    with style():
        bars = 0.8 + 0.24 * len(order)
        made = sheet(8.2, 4.6 + 2 * bars)
        growth, totals, shared = made.subplots(3, 1, height_ratios=[3.6, bars, bars])
        look = marks(order)
        for agent in order:
            main = [r for r in found.requests(agent, turns=25) if r["main"]]
            mark = look[agent]
            growth.plot(
                [r["turn"] for r in main],
                [r["input_tokens"] for r in main],
                color=mark.colour,
                linestyle=mark.line,
                marker=mark.marker,
                markersize=3,
                label=found.labels[agent],
            )
        growth.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL)
        growth.set_xlim(0.5, 25.5)
        growth.set_ylim(0)
        growth.yaxis.set_major_formatter("{x:,.0f}")
        finish(growth, "a   Tokens of each request, 25 turns", "turn")
        sums = {}
        for agent in order:
            of = dict.fromkeys(GROUPS, 0)
            for request in found.requests(agent, turns=25):
                for group, tokens in grouped(request["causes"]).items():
                    of[group] += tokens
            sums[found.labels[agent]] = of
        _bars(totals, sums, "total")
        finish(totals, "b   All requests of 25 turns together, by cause", "tokens", grid="x")
        totals.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL)
        _common(shared, found, order)
        caption(
            made,
            "Requests beside the loop (titles, routing) are in b. In c: first requests of two sessions of one agent.",
        )
    return made


def _common(axes: Any, found: Found, order: Sequence[str]) -> None:
    """What the first request of another task elsewhere has in common with this one's, from its beginning."""
    rows = {a: c for a in order if (c := (found.runs.get((a, "elsewhere", 10)) or {}).get("common"))}
    labels = [found.labels[a] for a in rows]
    same, rest = [c["tokens"] for c in rows.values()], [c["of"] - c["tokens"] for c in rows.values()]
    axes.barh(labels, same, height=0.72, label="the same", color="#0072B2")
    look = {"color": "#E69F00", "edgecolor": "white", "hatch": HATCHES[1], "linewidth": 0.6}
    axes.barh(labels, rest, left=same, height=0.72, label="after the first difference", **look)
    longest = max(c["of"] for c in rows.values())
    for place, common in enumerate(rows.values()):
        said = f"{common['tokens'] / common['of']:.0%}, then {common['broken_by'].partition('/')[0]}"
        axes.text(common["of"] + 0.008 * longest, place, said, va="center", fontsize=SMALL)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, longest * 1.35)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="y", length=0)
    finish(axes, "c   First request: what a cache could carry over to another task elsewhere", "tokens", grid="x")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL)


def write() -> None:
    """Write the tables between their marks in tables.md, the first page and docs, and the figure."""
    found = Found(rows("runs.jsonl"), rows("requests.jsonl"))
    for name, made in (("first", first_table), ("total", total_table), ("cache", cache_table)):
        write_between(HERE / "tables.md", name, made(found))
    for page, made in (("docs/meter.md", page_table), ("README.md", short_table)):
        write_between(HERE.parents[1] / page, "tax", made(found))
    (HERE / "figures").mkdir(exist_ok=True)
    if found.by_first():
        first_figure(found).savefig(HERE / "figures" / "first_request.png", dpi=130)


if __name__ == "__main__":
    write()
