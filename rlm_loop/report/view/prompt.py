"""The whole prompt of a turn, each stretch of it in the colour of its cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from markupsafe import Markup

from rlm_loop.messages import Message, Prompt
from rlm_loop.report.run.chart import stacked
from rlm_loop.report.run.marked import plain_text
from rlm_loop.report.run.page import shades_of
from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.run.view import RunView
from rlm_loop.report.templates import macros
from rlm_loop.report.view.episode import view_of
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import RunIndex
from rlm_loop.traces.trace import TraceError

#: Characters of one stretch that are shown.
_MOST = 200_000


class Stretch(NamedTuple):
    """A span of a message: the class of its colour, its cause, its text as HTML."""

    shade: str
    cause: str
    text: Markup


class PromptMessage(NamedTuple):
    """One message: `new` where the request of the turn before did not have it."""

    role: str
    new: bool
    stretches: list[Stretch]
    calls: str


def prompt_page(index: RunIndex, episode: ListedEpisode, node: str, turn: int) -> str:
    """The prompts of one turn of one node of an episode's run.  Raises `TraceError` where the trace has none."""
    view = view_of(index, episode)
    asked, turns = list[tuple[str, Prompt]](), list[int]()
    before: tuple[Message, ...] = ()
    for event, prompt in view.record.requests():
        if str(event.get("node", "0")) != node:
            continue
        number = int(event.get("turn") or 0)
        turns.append(number)
        if number == turn:
            asked.append((str(event.get("purpose", "agent")), prompt))
        elif number < turn and event.get("purpose") != "compaction":
            before = prompt.messages
    if not asked:
        raise TraceError(f"turn {turn} of node {node} has no request in this trace")
    shades, colours = shades_of([view])
    known = set(before)
    there = sorted(set(turns))
    place = there.index(turn)
    content = macros("view/prompt.html").prompts(
        episode=episode,
        node=node,
        turn=turn,
        before=there[place - 1] if place else None,
        after=there[place + 1] if place + 1 < len(there) else None,
        tokens=_tokens(view, node, turn, shades),
        requests=[
            (purpose, [_shown(message, known, shades) for message in prompt.messages], *_tools(prompt), shades)
            for purpose, prompt in asked
        ],
        first=not before,
    )
    return sealed(
        "run/page.html",
        "view/view.css",
        "run/page.js",
        colours=colours,
        title=f"Prompt of turn {turn} · {episode.name}",
        runs=content,
        keys=macros("view/prompt.html").keys(),
        foot=macros("view/around.html").foot(),
        name=episode.path,
    )


def _shown(message: Message, known: set[Message], shades: Mapping[str, str]) -> PromptMessage:
    stretches = [
        Stretch(shades.get(span.cause, "c-other"), span.cause, plain_text(span.text, _MOST)) for span in message.spans
    ]
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return PromptMessage(str(message.role), message not in known, stretches, "\n".join(calls))


def _tools(prompt: Prompt) -> tuple[Markup, int]:
    """The schemas of the tools that went with a request, and how many they are."""
    if not prompt.tools:
        return Markup(""), 0
    return plain_text(json.dumps(prompt.tools, indent=1, ensure_ascii=False), _MOST), len(prompt.tools)


def _tokens(view: RunView, node: str, turn: int, shades: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    """The tokens of the turn's calls by cause: class, cause, number and share of the input."""
    sums = view.causes_in(node, turn)
    total = sum(sums.values())
    return [
        (shades.get(name, "c-other"), name, f"{sums[name]:,}", f"{100 * sums[name] / total:.0f} %")
        for name in sorted(sums, key=stacked)
        if sums[name]
    ]
