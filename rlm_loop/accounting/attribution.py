"""Charge the tokens of one model call to causes, so that they always sum to the provider's number.

Three things may be known of a call: the counts of a tokenizer (`Part`s), the report of the provider (`Usage`), and the
text.  `attribute` makes one account of them:

- both counts are there and agree: the parts are exact;
- the provider reports more: the parts stay as they were counted, and the rest is a part of its own, `unattributed`;
- the provider reports less: the parts are scaled down to it, and what rounding leaves is the `unattributed`, so that it
  never is negative, and no cause is charged more than the bill;
- nothing was counted: the reported number is shared out by length (`apportion`);
- nothing was reported: the parts are the counted ones, or none.  Unknown tokens are not invented.

A cause may be finer, as `cause/detail`: `tool_result/read_file`, `scaffold:reminder/system-reminder`.  A row
has the two apart, so sums by cause stay what they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from rlm_loop.accounting.later import Later
from rlm_loop.actions import INTENT, INTENT_CAUSE
from rlm_loop.messages import Prompt, Usage

#: Tokens that the provider billed and that no counted text accounts for.
UNATTRIBUTED = "unattributed"

#: Text already sent in an earlier call: a message index, or (index, cause) for part of one.
Resent = int | tuple[int, str]


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


_TOKENS = attrgetter("tokens")


@dataclass(frozen=True)
class Row:
    """Input tokens of one call charged to one cause and one turn of origin.

    `resent` is the part of `tokens` that an earlier call of the same agent had already sent (the rest is sent for the
    first time), `cached` the part that the provider took from its cache and `written` the part that it put there
    (`None` where it does not say).  `detail` is the tool, the tag of a block, or "".
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
    """The account of one call: `parts` sum to `usage.input_tokens` where that is known.

    `counted` is the tokenizer's number (`None`: none was at hand), `exact` is true where the provider reported the
    same, `usage_warning` is one line on what is missing or impossible in the report ("" where nothing is).
    """

    parts: Sequence[Part]
    usage: Usage
    counted: int | None
    exact: bool
    usage_warning: str = ""


#: Figures that are parts of another: the word for such tokens, and the figure that they are part of.
_PARTS = {
    "cache_read_tokens": ("cached", "input_tokens"),
    "cache_write_tokens": ("written to a cache", "input_tokens"),
    "reasoning_tokens": ("thought", "output_tokens"),
}


def attribute(prompt: Prompt, measured: Sequence[Part] | None, usage: Usage | None) -> Attribution:
    """Make one account of the counted parts and the reported usage; see the module.

    Impossible figures count as not known: numbers below zero, and parts that are more than their sum (more cached
    tokens than prompt tokens).
    """
    warning, wrong = "" if usage is not None else "no usage reported", list[str]()
    known = usage or Usage(None, None)
    for name in ("input_tokens", "output_tokens", *_PARTS, "cost"):
        value = getattr(known, name)
        if value is not None and not value >= 0:  # NaN is no figure either
            wrong.append(f"{name} {value}")
            known = replace(known, **{name: None})
    for name, (word, sum_name) in _PARTS.items():
        part, total = getattr(known, name), getattr(known, sum_name)
        if part is not None and total is not None and part > total:
            wrong.append(f"{part} {word} of {total} {'prompt' if sum_name == 'input_tokens' else 'output'} tokens")
            known = replace(known, **{name: None})
    counted, reported = sum(map(_TOKENS, measured)) if measured else None, known.input_tokens
    if wrong:
        warning = f"impossible figures, taken as not known: {', '.join(wrong)}"
    elif reported is None:
        warning = warning or "no prompt tokens reported"
    elif counted is not None and counted > reported:
        warning = f"{reported} prompt tokens reported, {counted} counted: the counts are scaled down"
    parts: Sequence[Part] = ()
    if measured:
        parts = measured if counted == reported else reconcile(measured, reported)
    elif reported is not None:
        parts = Later(lambda: apportion(prompt, reported))
    return Attribution(parts, known, counted, counted is not None and counted == reported, warning)


def reconcile(parts: Sequence[Part], reported: int | None) -> list[Part]:
    """Make counted parts sum to the reported number; where that is `None` they stay as they are.

    The unattributed part comes last and is charged to turn 0: the place of its text in the prompt is not known.
    """
    counted = sum(map(_TOKENS, parts))
    if reported is None or counted == reported:
        return list(parts)
    if counted > reported:
        parts = [replace(p, tokens=p.tokens * reported // counted) for p in parts]
    rest = reported - sum(p.tokens for p in parts)
    last = max((p.message for p in parts), default=0)
    return [*parts, Part(UNATTRIBUTED, 0, last, rest)] if rest else list(parts)


def apportion(prompt: Prompt, tokens: int) -> list[Part]:
    """Split a reported number of prompt tokens over the prompt by its characters, where no tokenizer is at hand.

    Markers count as four tokens a message (charged to `template`); the texts share the rest by length, largest
    remainder first, so the sum is exact.  Where the prompt has something that is no text (a span without text whose
    cause is `unattributed/...`), a text is charged a token for four characters, and the rest is that thing's.
    """
    pieces: list[tuple[str, int, int, float]] = []
    if prompt.tools:
        pieces.append(("tool_schema", 0, -1, float(sum(len(str(dict(t))) for t in prompt.tools))))
    unread: list[tuple[str, int, int]] = []
    for index, message in enumerate(prompt.messages):
        pieces.append(("template", message.turn, index, 16.0))
        pieces += [(s.cause, message.turn, index, float(len(s.text))) for s in message.spans if s.text]
        unread += [(s.cause, message.turn, index) for s in message.spans if s.cause.startswith(f"{UNATTRIBUTED}/")]
        if called := sum(len(c.name) + len(c.arguments) + 20 for c in message.tool_calls):
            pieces.append(("assistant", message.turn, index, float(called)))
    pieces.append(("template", 0, len(prompt.messages), 12.0))
    if unread and all(cause == "template" for cause, *_ in pieces):
        pieces = []  # nothing of it is known
    if unread:  # an image or a file: what the texts do not need at four characters a token is taken for it
        share = max(4.0 * tokens - (sum(p[3] for p in pieces) or 1.0), 0.0) / len(unread)
        pieces = sorted([*pieces, *((*one, share) for one in unread)], key=lambda piece: piece[2])
    shares = shared_out(tokens, [p[3] for p in pieces])
    return [Part(c, t, m, n) for (c, t, m, _), n in zip(pieces, shares, strict=True)]


def shared_out(tokens: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers that sum to `tokens`, as near to the proportion of the weights as can be."""
    total = sum(weights) or 1.0
    exact = [weight / total * tokens for weight in weights]
    numbers = [int(part) for part in exact]
    order = sorted(range(len(exact)), key=lambda i: numbers[i] - exact[i])
    for i in order[: tokens - sum(numbers)]:
        numbers[i] += 1
    return numbers


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool of a request: of a function, of a custom one, or the type of one that the provider runs."""
    function = tool.get("function")
    name: Any = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return str(name or tool.get("type") or "")


def sent_before(part: Part, sent: int, again: Collection[Resent] = ()) -> bool:
    """True where the caller had sent this part; `sent` and `again` are as in `rows_of`."""
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
    written: int | None = None,
    again: Collection[Resent] = (),
    tools: Sequence[Mapping[str, Any]] = (),
) -> tuple[Row, ...]:
    """The parts of one call in sum by cause and turn of origin.

    `sent` is the number of leading messages that the caller's call before had, `again` what else it had sent at any
    time (compaction moves messages forward), `cached` the number of leading tokens that the provider took from its
    cache, `written` the number of those after them that it put there.  The tokens of `tools` are shared out among them
    by the length of their JSON.  Unattributed tokens are never re-sent: their text is not known.
    """
    totals: dict[tuple[str, str, int], list[int]] = {}
    in_cache, to_cache = cached or 0, written or 0
    for part in _by_tool(parts, tools):
        cause, _, detail = part.cause.partition("/")
        entry = totals.setdefault((cause, detail, part.origin_turn), [0, 0, 0, 0])
        read = min(in_cache, part.tokens)
        wrote = min(to_cache, part.tokens - read)
        in_cache, to_cache = in_cache - read, to_cache - wrote
        before = part.tokens if sent_before(part, sent, again) else 0
        for column, tokens in enumerate((part.tokens, before, read, wrote)):
            entry[column] += tokens
    return tuple(
        Row(
            *(call, turn, depth, purpose, cause, origin, tokens, resent),
            None if cached is None else read,
            detail,
            None if written is None else wrote,
        )
        for (cause, detail, origin), (tokens, resent, read, wrote) in totals.items()
    )


def _by_tool(parts: Iterable[Part], tools: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """The parts, with the tokens of all tools shared out among them and the statements of typed actions."""
    sizes: list[tuple[str, int]] = []
    for tool in tools:
        name, size, stated = tool_name(tool), len(json.dumps(tool, default=str)), _intent_size(tool)
        sizes += [(f"tool_schema/{name}", size - stated), *([(f"{INTENT_CAUSE}/{name}", stated)] if stated else [])]
    for part in parts:
        if part.cause == "tool_schema" and tools:
            shares = shared_out(part.tokens, [size for _, size in sizes])
            yield from (replace(part, cause=cause, tokens=n) for (cause, _), n in zip(sizes, shares, strict=True) if n)
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
