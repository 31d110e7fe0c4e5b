"""Which tokens of one model call are charged to which cause, so that they always sum to what the provider reported.

Three things may be known of a call: what a tokenizer counted (`Part`s), what the provider reported (`Usage`), and the
text.  `attribute` makes one account of them:

- both counts are there and agree: the parts are exact;
- the provider reports more: the parts stay as they were counted, and the rest is a part of its own, `unattributed`;
- the provider reports less: the parts are scaled down to it, and what rounding leaves is the `unattributed`, so that it
  never is negative, and no cause is charged more than the bill;
- nothing was counted: the reported number is shared out by length (`apportion`);
- nothing was reported: the parts are what was counted, or none.  Unknown tokens are not invented.

A cause may be told more finely, as `cause/detail`: `tool_result/read_file`, `scaffold:reminder/system-reminder`.  A row
has the two apart, so sums by cause stay what they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.accounting.later import Later
from rlm_loop.actions import INTENT, INTENT_CAUSE
from rlm_loop.messages import Prompt, Usage

#: Tokens that the provider billed and that no counted text accounts for.
UNATTRIBUTED = "unattributed"

#: A text that was sent before: the index of a whole message, or of one of which only the texts of a cause were.
Again = int | tuple[int, str]


@dataclass(frozen=True)
class Part:
    """A stretch of a prompt: its cause (or `cause/detail`), the turn that wrote it, its message's index, its tokens.

    `message` is -1 for text before the first message (tool schemas, the template's head) and the number of
    messages for text after the last one (the marker that asks for a reply).
    """

    cause: str
    origin_turn: int
    message: int
    tokens: int


@dataclass(frozen=True)
class Row:
    """Input tokens of one call charged to one cause and one turn of origin.

    `resent` is the part of `tokens` that an earlier call of the same agent had already sent (the rest is sent for the
    first time), `cached` the part that the provider took from its cache and `written` the part that it put there
    (`None` where it does not say).  `detail` is what is known more finely: the tool, the tag of a block, or "".
    """

    call: int
    turn: int
    depth: int
    purpose: str
    cause: str
    origin_turn: int
    tokens: int
    resent: int
    cached: int | None
    detail: str = ""
    written: int | None = None


@dataclass(frozen=True)
class Attribution:
    """The account of one call.

    `parts` sum to `usage.input_tokens` where that is known.  `counted` is what a tokenizer found (`None`: none was at
    hand), `exact` whether it is the very number that the provider reported, `usage_warning` one line on what is
    missing or impossible in the report ("" where nothing is).
    """

    parts: Sequence[Part]
    usage: Usage
    counted: int | None
    exact: bool
    usage_warning: str = ""


def attribute(prompt: Prompt, measured: Sequence[Part] | None, usage: Usage | None) -> Attribution:
    """One account of what was counted and what was reported; see the module."""
    counted = sum([p.tokens for p in measured]) if measured else None
    known, usage_warning = credible(usage)
    reported = known.input_tokens
    parts: Sequence[Part] = ()
    if measured:
        parts = measured if counted == reported else reconcile(measured, reported)
    elif reported is not None:
        parts = Later(lambda: apportion(prompt, reported))
    if counted is not None and reported is not None and counted > reported and not usage_warning:
        usage_warning = f"{reported} prompt tokens reported, {counted} counted: the counts are scaled down"
    return Attribution(parts, known, counted, counted is not None and counted == reported, usage_warning)


def credible(usage: Usage | None) -> tuple[Usage, str]:
    """The usage without figures that cannot be (they are not known then), and one line that names what is wrong.

    Impossible are numbers below zero, and parts that are more than the whole: more cached tokens than prompt tokens.
    """
    if usage is None:
        return Usage(None, None), "no usage reported"
    wrong: list[str] = []
    for name in ("input_tokens", "output_tokens", *_PARTS, "cost"):
        value = getattr(usage, name)
        if value is not None and not value >= 0:  # NaN is no figure either
            wrong.append(f"{name} {value}")
            usage = replace(usage, **{name: None})
    for name, (kind, of) in _PARTS.items():
        part, whole = getattr(usage, name), getattr(usage, of)
        if part is not None and whole is not None and part > whole:
            wrong.append(f"{part} {kind} of {whole} {'prompt' if of == 'input_tokens' else 'output'} tokens")
            usage = replace(usage, **{name: None})
    if wrong:
        return usage, f"impossible figures, taken as not known: {', '.join(wrong)}"
    return usage, "" if usage.input_tokens is not None else "no prompt tokens reported"


#: Of what a figure is a part, and what such tokens are called.
_PARTS = {
    "cache_read_tokens": ("cached", "input_tokens"),
    "cache_write_tokens": ("written to a cache", "input_tokens"),
    "reasoning_tokens": ("thought", "output_tokens"),
}


def reconcile(parts: Sequence[Part], reported: int | None) -> list[Part]:
    """Counted parts as parts that sum to the reported number; where that is `None` they stay as they are.

    The unattributed part comes last, since nobody knows where in the prompt its text is: it is charged to turn 0.
    """
    counted = sum([p.tokens for p in parts])
    if reported is None or counted == reported:
        return list(parts)
    if counted > reported:
        parts = [replace(p, tokens=p.tokens * reported // counted) for p in parts]
    left = reported - sum(p.tokens for p in parts)
    after = max((p.message for p in parts), default=0)
    return [*parts, Part(UNATTRIBUTED, 0, after, left)] if left else list(parts)


def apportion(prompt: Prompt, tokens: int) -> list[Part]:
    """Split a reported number of prompt tokens over the prompt by its characters.

    For models whose tokenizer is not at hand.  Markers count as four tokens a message (charged to
    `template`); what is left goes to the texts by length, largest remainder first, so the sum is exact.  Where the
    prompt has something that is no text (a span without text whose cause is `unattributed/...`), a text is charged a
    token for four characters, and the rest is that thing's.
    """
    pieces: list[tuple[str, int, int, float]] = []
    if prompt.tools:
        pieces.append(("tool_schema", 0, -1, float(sum(len(str(dict(t))) for t in prompt.tools))))
    unread: list[tuple[str, int, int]] = []
    for index, message in enumerate(prompt.messages):
        pieces.append(("template", message.turn, index, 16.0))
        pieces += [(s.cause, message.turn, index, float(len(s.text))) for s in message.spans if s.text]
        unread += [(s.cause, message.turn, index) for s in message.spans if s.cause.startswith(f"{UNATTRIBUTED}/")]
        called = sum(len(c.name) + len(c.arguments) + 20 for c in message.tool_calls)
        if called:
            pieces.append(("assistant", message.turn, index, float(called)))
    pieces.append(("template", 0, len(prompt.messages), 12.0))
    if unread and all(cause == "template" for cause, *_ in pieces):
        pieces = []  # nothing of it is known
    weight = sum(p[3] for p in pieces) or 1.0
    if unread:  # an image or a file: what the texts do not need at four characters a token is taken for it
        share = max(4.0 * tokens - weight, 0.0) / len(unread)
        pieces += [(*one, share) for one in unread]
        pieces.sort(key=lambda piece: piece[2])
        weight += share * len(unread)
    whole = shared_out(tokens, [p[3] / weight for p in pieces])
    return [Part(c, t, m, n) for (c, t, m, _), n in zip(pieces, whole, strict=True)]


def shared_out(tokens: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that sum to `tokens`, as near to these shares of it (which sum to 1) as can be."""
    exact = [share * tokens for share in shares]
    whole = [int(part) for part in exact]
    order = sorted(range(len(exact)), key=lambda i: whole[i] - exact[i])
    for i in order[: tokens - sum(whole)]:
        whole[i] += 1
    return whole


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool of a request: of a function, of a custom one, or the type of one that the provider runs."""
    function = tool.get("function")
    named: Any = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return str(named or tool.get("type") or "")


def sent_before(part: Part, sent: int, again: Collection[Again] = ()) -> bool:
    """Whether the caller had sent this part; `sent` and `again` are as in `rows_of`."""
    before = (sent > 0 and part.message < sent) or part.message in again or (part.message, part.cause) in again
    return before and part.cause != UNATTRIBUTED


def rows_of(
    parts: Iterable[Part],
    call: int,
    turn: int,
    depth: int,
    purpose: str,
    sent: int,
    cached: int | None,
    again: Collection[Again] = (),
    written: int | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> tuple[Row, ...]:
    """The parts of one call in sum by cause and turn of origin.

    `sent` is how many leading messages the caller's call before had, `again` what else it had sent at any time
    (compaction moves messages forward, and notes in one that others are left out), `cached` how many leading tokens
    the provider took from its cache, `written` how many of those that follow it put there.  What `tools` take together
    is shared out among them by the length of their JSON.  Unattributed tokens are never re-sent: nobody knows what they
    are.
    """
    totals: dict[tuple[str, str, int], list[Any]] = {}
    left, new = cached or 0, written or 0
    for part in _by_tool(parts, tools):
        cause, _, detail = part.cause.partition("/")
        entry = totals.setdefault((cause, detail, part.origin_turn), [0, 0, None, None])
        hit = min(left, part.tokens)
        put = min(new, part.tokens - hit)
        left, new = left - hit, new - put
        entry[0] += part.tokens
        entry[1] += part.tokens if sent_before(part, sent, again) else 0
        if cached is not None:
            entry[2] = (entry[2] or 0) + hit
        if written is not None:
            entry[3] = (entry[3] or 0) + put
    return tuple(
        Row(call, turn, depth, purpose, cause, origin, tokens, resent, hit, detail, put)
        for (cause, detail, origin), (tokens, resent, hit, put) in totals.items()
    )


def _by_tool(parts: Iterable[Part], tools: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """The parts with what all tools take together shared out among them, and among the statements of typed actions."""
    sizes: list[tuple[str, int]] = []
    for tool in tools:
        name, size, stated = tool_name(tool), len(json.dumps(tool, default=str)), _intent_size(tool)
        sizes += [(f"tool_schema/{name}", size - stated), *([(f"{INTENT_CAUSE}/{name}", stated)] if stated else [])]
    total = sum(size for _, size in sizes)
    for part in parts:
        if part.cause == "tool_schema" and tools:
            each = shared_out(part.tokens, [size / total for _, size in sizes])
            yield from (replace(part, cause=cause, tokens=n) for (cause, _), n in zip(sizes, each, strict=True) if n)
        else:
            yield part


def _intent_size(tool: Mapping[str, Any]) -> int:
    """Return the characters that the statements of a typed action take in the schema of a tool."""
    try:
        properties = tool["function"]["parameters"]["properties"]
        stated = {k: v for k, v in INTENT.items() if properties.get(k) == v}
    except (KeyError, TypeError, AttributeError):  # a tool of another API, or of a stranger
        return 0
    return len(json.dumps(stated)) + len(json.dumps(list(stated))) if stated else 0
