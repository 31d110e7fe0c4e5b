"""Read an answer given as plain text: the `Final Answer:` marker, and refusals."""

from __future__ import annotations

import re

from rlm_loop.dialects.fences import find_marks
from rlm_loop.dialects.python_source import looks_like_python

_REFUSAL = re.compile(
    r"(?:(?:i'm|i am|we're|we are)?\s*(?:very |really |truly |so )?(?:sorry|afraid)[,.]?\s*(?:but |that )?\s*)?"
    r"(?:as an ai(?: language)?(?: model| assistant)?,?\s*)?"
    r"i(?:'m| am)?\s*(?:just |really |currently )?(?:can't|cannot|can not|unable to|not able to|won't|will not)\s+"
    r"(?:help|assist|comply|fulfil|answer|provide|do (?:that|this)|continue|complete|perform|proceed|process|access)",
    re.IGNORECASE,
)
_BLOCKED = re.compile(r"\**BLOCKED:\**\s*(\S.*)")
_CALL = re.compile(r"""["'](?:name|tool|arguments)["']\s*:|^\s*Action(?: Input)?:""", re.MULTILINE)
_ANSWERS = re.compile(r"\b(?:answer|result) (?:is|would be|should be)\b|\bfinal answer\b|\bhowever\b", re.IGNORECASE)
_MARKER = re.compile(
    r"^[ \t]*+(?P<heading>\#{1,6}[ \t]++)?+(?P<bold>\*\*|__)?+[ \t]*+final[ \t]++answer(?![^\W_])[ \t]*+"
    r"(?P<closed>(?(bold)(?P=bold)|(?!))[ \t]*+)?+"
    r"(?::(?P<after>(?(bold)(?P=bold)|(?!)))?+|(?(heading)|(?(closed)|(?!)))(?=[\r\n]|\Z))",
    re.IGNORECASE | re.MULTILINE,
)
_AGAIN = re.compile(r"\s*+" + _MARKER.pattern[1:], re.IGNORECASE)  # "Final Answer: Final Answer: 42"


def looks_like_refusal(text: str) -> bool:
    """Say whether a short reply does nothing but decline.  Conservative: a reply that also answers is not one."""
    plain = text.strip().replace("\u2019", "'")
    return len(plain) <= 800 and _REFUSAL.match(plain) is not None and _ANSWERS.search(plain) is None


def blocked_reason(text: str) -> str | None:
    """Return the reason in a reply that begins or ends with a line `BLOCKED: reason`, and has no code besides."""
    if "BLOCKED:" not in text or "```" in text or "~~~" in text:
        return None
    lines = [line.strip() for line in text.strip().split("\n")]
    found = (_BLOCKED.fullmatch(line) for line in (lines[0], lines[-1]))
    return next((match[1] for match in found if match), None)


def is_prose(text: str) -> bool:
    """Say whether a text could be an answer in words: no fence, no code and no part of a call."""
    plain = text.strip()
    if not plain or plain[0] in "{[<" or _CALL.search(plain):
        return False
    return not find_marks(plain.split("\n")) and not looks_like_python(plain)


def strip_answer_prefix(text: str) -> str:
    """Return what follows the last line that starts with a `Final Answer:` marker; without one, `text` unchanged.

    The marker may be a heading or bold, in any letter case.  Without a colon it must be a heading or bold and stand
    alone on its line.  A last marker with nothing after it is dropped; the text before it is then what counts.
    """
    markers, end = list(_MARKER.finditer(text)), len(text)
    for first in reversed(markers):
        marker = first
        while again := _AGAIN.match(text, marker.end(), end):
            marker = again
        answer, bold = text[marker.end() : end].strip(), marker["bold"]
        if bold and not marker["closed"] and not marker["after"]:  # it is open still
            answer = answer.removesuffix(bold).rstrip()
        if answer:
            return answer
        end = first.start()
    return text[:end].strip() if markers else text
