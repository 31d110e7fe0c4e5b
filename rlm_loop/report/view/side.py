"""Two runs side by side, turn by turn, with the first place where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from markupsafe import Markup

from rlm_loop.outcome import Turn
from rlm_loop.report.notebook.formatting import action_text, observation_text
from rlm_loop.report.run.judged import judged
from rlm_loop.report.run.page import linked, shades_of
from rlm_loop.report.run.sealed import sealed
from rlm_loop.report.run.steps import Steps
from rlm_loop.report.run.view import Prefix, RunView, spans_of
from rlm_loop.report.templates import macros
from rlm_loop.report.view.episode import view_of
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import RunIndex

#: Characters before and after the first difference that are shown.
_BEFORE, _AFTER = 160, 400


class FirstDifference(NamedTuple):
    """Where two runs part: the turn, in what, the text that both have before it, and how each goes on."""

    turn: int
    what: str
    same: str
    left: tuple[str, str]
    right: tuple[str, str]
    """The rest of the line in which they part, and what follows it."""


def first_difference(left: Sequence[Turn], right: Sequence[Turn]) -> FirstDifference | None:
    """The first place where what the models wrote, or what came of it, differs; `None` where nothing does.

    Times and token counts are no part of it.
    """
    for place, (one, other) in enumerate(zip_longest(left, right)):
        turn = (one or other).index if one or other else place
        if one is None or other is None:
            which = "right" if one is None else "left"
            return FirstDifference(turn, f"only the {which} run has this turn", "", _whole(one), _whole(other))
        for what, mine, theirs in zip(("reply", "result"), _texts(one), _texts(other), strict=True):
            if mine != theirs:
                at = next(
                    (n for n, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b),
                    min(len(mine), len(theirs)),
                )
                said = "what the model wrote" if what == "reply" else "what came of it"
                start = max(0, at - _BEFORE)
                return FirstDifference(turn, said, mine[start:at], _goes_on(mine, at), _goes_on(theirs, at))
    return None


def _texts(turn: Turn) -> tuple[str, str]:
    """What a model wrote in a turn, and what came of it."""
    calls = [f"{call.name}({call.arguments})" for call in turn.reply.tool_calls]
    wrote = "\n".join([turn.reply.text, *calls]) if turn.reply.text or calls else ""
    wrote = wrote or "\n".join(action_text(action)[1] for action in turn.actions)
    return wrote, "\n".join(observation_text(seen)[1] for seen in turn.observations)


def _goes_on(text: str, at: int) -> tuple[str, str]:
    line, end, more = text[at : at + _AFTER].partition("\n")
    return line, end + more


def _whole(turn: Turn | None) -> tuple[str, str]:
    return ("(no such turn)", "") if turn is None else _goes_on(_texts(turn)[0], 0)


def side_page(index: RunIndex, left: ListedEpisode, right: ListedEpisode) -> str:
    """Two episodes side by side.  Raises `TraceError` where the trace of one cannot be read."""
    views = [
        RunView(view.found, view.number, Prefix(prefix))
        for view, prefix in ((view_of(index, left), "a-"), (view_of(index, right), "b-"))
    ]
    shades, colours = shades_of(views)
    columns = [list(Steps(view, shades).items(opened=True)) for view in views]
    mine, theirs = ([turn for turn, _ in column if turn is not None] for column in columns)
    difference = first_difference(mine, theirs)
    pieces = macros("view/side.html")
    content = pieces.sides(
        heads=[
            pieces.side_head(episode, judged(episode.row), view.stop, len(turns))
            for episode, view, turns in zip((left, right), views, (mine, theirs), strict=True)
        ],
        difference=difference,
        prompts=list(_different_prompts(*views)),
        pairs=[(turn, _html(a), _html(b)) for turn, a, b in _pairs(*columns)],
        swap=(right.id, left.id),
    )
    return sealed(
        "run/page.html",
        "view/view.css",
        "run/page.js",
        colours=colours,
        title=f"{left.name} | {right.name}",
        runs=linked(content),
        foot=macros("view/around.html").foot(),
        name=f"{left.path} and {right.path}",
    )


Items = list[tuple[Turn | None, str]]


def _pairs(left: Items, right: Items) -> Iterator[tuple[int, list[str], list[str]]]:
    """What belongs to each turn on both sides; what lies between two turns belongs to the later one."""
    for one, other in zip_longest(_by_turn(left), _by_turn(right)):
        yield (one or other or (0, []))[0], one[1] if one else [], other[1] if other else []


def _by_turn(items: Items) -> Iterator[tuple[int, list[str]]]:
    held: list[str] = []
    number = 0
    for turn, html in items:
        held.append(html)
        if turn is not None:
            number = turn.index
            yield number, held
            held = []
    if held:
        yield number + 1, held


def _html(items: list[str]) -> Markup:
    return Markup("").join(items)


def _different_prompts(left: RunView, right: RunView) -> Iterator[str]:
    """The causes of the first prompts whose text is not the same on both sides."""
    mine, theirs = _first_prompt(left), _first_prompt(right)
    yield from (cause for cause in dict.fromkeys((*mine, *theirs)) if mine.get(cause) != theirs.get(cause))


def _first_prompt(view: RunView) -> dict[str, str]:
    request = view.first_requests.get("0") or {}
    found: dict[str, str] = {}
    for key in request.get("added") or ():
        for text, cause in spans_of(view.bodies.get(str(key))):
            found[cause] = found.get(cause, "") + text
    tools = view.settings.get(str(request.get("settings")), {}).get("tools")
    return {**found, **({"tool_schema": str(tools)} if tools else {})}
