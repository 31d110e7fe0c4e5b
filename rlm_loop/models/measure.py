"""Exact causes of a prompt's tokens, for a model whose chat template and tokenizer are at hand.

The whole chat is rendered and tokenized once, as the model will read it; each token is charged to the piece of
text (see `regions`) that holds its first character.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlm_loop.accounting.attribution import Part, apportion
from rlm_loop.messages import Prompt
from rlm_loop.models.regions import Region, Render, regions

#: The tokens of a rendered text, each as the bytes that it stands for, beginning-of-text token included.
Tokenize = Callable[[str], Sequence[bytes]]


def measure(prompt: Prompt, body: Mapping[str, Any], render: Render, tokenize: Tokenize, trailer: str) -> list[Part]:
    """Return the parts of a prompt in reading order; their sum is the number of tokens that the model reads.

    `body` is the request as it will be sent, `trailer` what the template writes after a user's text.
    """
    rendered = render(body)
    pieces = tokenize(rendered)
    starts = _align(rendered.encode(), pieces)
    cut = None if starts is None else regions(prompt, body, rendered, render, trailer)
    if starts is None or cut is None:  # rewritten by the tokenizer or the template: the sum is exact all the same
        return apportion(prompt, len(pieces))
    return _count(cut, starts)


def _align(text: bytes, pieces: Sequence[bytes]) -> list[int] | None:
    """Return the offset at which each token begins, or `None` where the tokens do not spell the text."""
    starts: list[int] = []
    at = 0
    for piece in pieces:
        starts.append(at)
        if text.startswith(piece, at):
            at += len(piece)
        elif piece.startswith(b" ") and text.startswith(piece[1:], at):
            at += len(piece) - 1  # SentencePiece puts a space of its own before a text
        # else: a token without text of its own, as the beginning-of-text token
    return starts if at == len(text) else None


def _count(cut: Sequence[Region], starts: Sequence[int]) -> list[Part]:
    """Count the tokens of each region; a character's tokens all begin in the region that holds it."""
    parts: list[Part] = []
    end, token = 0, 0
    for region in cut:
        end += len(region.text.encode())
        first = token
        while token < len(starts) and starts[token] < end:
            token += 1
        if token > first:
            parts.append(Part(region.cause, region.turn, region.message, token - first))
    if token < len(starts):  # tokens without text at the very end
        parts.append(Part("template", 0, cut[-1].message if cut else 0, len(starts) - token))
    return parts
