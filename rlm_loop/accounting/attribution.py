"""Charge the tokens of one model call to causes, so that they always sum to the provider's number.

Three things may be known of a call: the counts of a tokenizer (`Part`s), the report of the provider (`Usage`), and the
text.  `attribute` makes one account of them:

- both counts are there and agree: the parts are exact;
- the provider reports more: the parts stay as they were counted, and the rest is a part of its own, `unattributed`;
- the provider reports less: the parts are scaled down to it, and what rounding leaves is the `unattributed`, so that it
  never is negative, and no cause is charged more than the bill;
- nothing was counted: the reported number is shared out by length (`apportion`);
- nothing was reported: the parts are the counted ones, or none.  Unknown tokens are not invented.

A cause may be finer, as `cause/detail`: `tool_result/read_file`, `scaffold:reminder/system-reminder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

from rlm_loop.messages import Prompt, Usage

#: Tokens that the provider billed and that no counted text accounts for.
UNATTRIBUTED = "unattributed"

#: Text already sent in an earlier call: a message index, or (index, cause) for part of one.
Resent = int | tuple[int, str]


class Part(NamedTuple):
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


#: The figures of a usage, and the figure that each is a part of.
_FIGURES = {
    "input_tokens": "",
    "output_tokens": "",
    "cost": "",
    "cache_read_tokens": "input_tokens",
    "cache_write_tokens": "input_tokens",
    "reasoning_tokens": "output_tokens",
}


def attribute(prompt: Prompt, measured: Sequence[Part] | None, usage: Usage | None) -> Attribution:
    """Make one account of the counted parts and the reported usage; see the module.

    Impossible figures count as not known: numbers below zero, and parts that are more than their sum (more cached
    tokens than prompt tokens).
    """
    warning, wrong = "" if usage is not None else "no usage reported", list[str]()
    known = usage or Usage(None, None)
    for name, of in _FIGURES.items():
        value, total = getattr(known, name), getattr(known, of, None)
        if value is not None and not (value >= 0 and (total is None or value <= total)):  # NaN is no figure either
            wrong.append(f"{name} {value}" + (f" of {total}" if total is not None else ""))
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
        parts = apportion(prompt, reported)
    return Attribution(parts, known, counted, counted is not None and counted == reported, warning)


def reconcile(parts: Sequence[Part], reported: int | None) -> list[Part]:
    """Make counted parts sum to the reported number; where that is `None` they stay as they are.

    The unattributed part comes last and is charged to turn 0: the place of its text in the prompt is not known.
    """
    counted = sum(map(_TOKENS, parts))
    if reported is None or counted == reported:
        return list(parts)
    if counted > reported:
        parts = [p._replace(tokens=p.tokens * reported // counted) for p in parts]
    rest = reported - sum(p.tokens for p in parts)
    last = max((p.message for p in parts), default=0)
    return [*parts, Part(UNATTRIBUTED, 0, last, rest)] if rest else list(parts)


def apportion(prompt: Prompt, tokens: int) -> list[Part]:
    """Split a reported number of prompt tokens over the prompt by its characters, where no tokenizer is at hand.

    Markers count as four tokens a message (charged to `template`); the texts share the rest by length, largest
    remainder first, so the sum is exact.  Where the prompt has something that is no text (a span without text whose
    cause is `unattributed/...`), a text is charged a token for four characters, and the rest is that thing's.
    """
    no_text = f"{UNATTRIBUTED}/"
    pieces: list[tuple[str, int, int, float]] = []
    if prompt.tools:
        pieces.append(("tool_schema", 0, -1, float(sum(len(str(dict(t))) for t in prompt.tools))))
    for index, message in enumerate(prompt.messages):
        pieces.append(("template", message.turn, index, 16.0))
        for span in message.spans:
            if span.text or span.cause.startswith(no_text):
                pieces.append((span.cause, message.turn, index, float(len(span.text))))
        if called := sum(len(c.name) + len(c.arguments) + 20 for c in message.tool_calls):
            pieces.append(("assistant", message.turn, index, float(called)))
    pieces.append(("template", 0, len(prompt.messages), 12.0))
    unread = [piece for piece in pieces if piece[0].startswith(no_text)]
    if unread and all(piece in unread or piece[0] == "template" for piece in pieces):
        pieces = unread  # nothing of it is known
    if unread:  # an image or a file: what the texts do not need at four characters a token is taken for it
        share = max(4.0 * tokens - (sum(p[3] for p in pieces) or 1.0), 0.0) / len(unread)
        pieces = [(*piece[:3], share) if piece in unread else piece for piece in pieces]
    shares = shared_out(tokens, [p[3] for p in pieces])
    return [Part(c, t, m, n) for (c, t, m, _), n in zip(pieces, shares, strict=True)]


def shared_out(tokens: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers that sum to `tokens`, as near to the proportion of the weights as can be."""
    total = sum(weights) or 1.0
    exact = [weight / total * tokens for weight in weights]
    numbers = [int(part) for part in exact]
    lost = [number - part for number, part in zip(numbers, exact, strict=True)]
    order = sorted(range(len(exact)), key=lost.__getitem__)
    for i in order[: tokens - sum(numbers)]:
        numbers[i] += 1
    return numbers


def tool_name(tool: Mapping[str, Any]) -> str:
    """Return the name of a tool of a request, or the type of a tool that the provider runs."""
    function = tool.get("function")
    name: Any = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return str(name or tool.get("type") or "")
