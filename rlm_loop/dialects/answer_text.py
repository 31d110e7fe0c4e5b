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
_MARKER = re.compile(r"[ \t]*+(#{1,6}[ \t]++)?+(\*\*|__)?+[ \t]*+final[ \t]++answer(?![^\W_])[ \t]*+", re.IGNORECASE)
_LINE_MARKER = re.compile("^" + _MARKER.pattern, re.IGNORECASE | re.MULTILINE)


def looks_like_refusal(text: str) -> bool:
    """Say whether a short reply does nothing but decline.  Conservative: a reply that also answers is not one."""
    plain = text.strip().replace("\u2019", "'")
    return len(plain) <= 800 and _REFUSAL.match(plain) is not None and _ANSWERS.search(plain) is None


def blocked_reason(text: str) -> str | None:
    """The reason in a reply that begins or ends with a line `BLOCKED: reason`, and has no code besides."""
    if "BLOCKED:" not in text or "```" in text or "~~~" in text:
        return None
    lines = [line.strip() for line in text.strip().split("\n")]
    found = (_BLOCKED.fullmatch(line) for line in (lines[0], lines[-1]))
    return next((match[1] for match in found if match), None)


def is_prose(text: str) -> bool:
    """Whether a text could be an answer in words: not empty, without a fence, not code, and not (part of) a call."""
    plain = text.strip()
    if not plain or plain[0] in "{[<" or _CALL.search(plain):
        return False
    return not find_marks(plain.split("\n")) and not looks_like_python(plain)


def strip_answer_prefix(text: str) -> str:
    """Return what follows the last line that starts with a `Final Answer:` marker; without one, `text` unchanged.

    The marker may be a heading or bold, in any letter case.  Without a colon it must be a heading or bold and stand
    alone on its line.  A last marker with nothing after it is dropped; the text before it is then what counts.
    """
    while (answer := _strip_once(text)) != text:  # again, where what is left begins with a marker of its own
        text = answer
    return text


def _strip_once(text: str) -> str:
    found = [place for match in _LINE_MARKER.finditer(text) if (place := _after(text, match)) is not None]
    end = len(text)
    for begin, start, bold in reversed(found):
        while match := _MARKER.match(text, _skip_space(text, start)):  # "Final Answer: Final Answer: 42"
            again = _after(text, match)
            if again is None or again[1] > end:
                break
            start, bold = again[1], again[2]
        answer = text[start:end].strip()
        if bold:
            answer = answer.removesuffix(bold).rstrip()
        if answer:
            return answer
        end = begin
    return text[:end].strip() if found else text


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _after(text: str, match: re.Match[str]) -> tuple[int, int, str] | None:
    """Where the marker begins and its answer starts, and the bold mark that is still open; None if it is no marker."""
    heading, bold, at = match[1], match[2] or "", match.end()
    if bold and text.startswith(bold, at):
        at, bold = at + len(bold), ""
        while text[at : at + 1] in (" ", "\t"):
            at += 1
    if text[at : at + 1] == ":":
        at += 1
        if bold and text.startswith(bold, at):
            at, bold = at + len(bold), ""
        return match.start(), at, bold
    alone = (heading or (match[2] and not bold)) and text[at : at + 1] in ("", "\n", "\r")
    return (match.start(), at, "") if alone else None
