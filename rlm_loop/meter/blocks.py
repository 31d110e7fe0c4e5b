"""Blocks that an agent puts around a prompt, told by structure alone.

Nothing of any agent is known here.  The structure is tags in lines of their own, headings, and the names that
memory files have by custom.  Text that shows no such structure stays what it was.

- a memory file: from a heading that names one (`# AGENTS.md instructions for /x`, `Contents of /x/CLAUDE.md`) to the
  end that is said, else of the block it stands in or before, else (in system text) of the text;
- environment: a block whose tag says so (`<environment_context>`, `<env>`), a section or a reminder that tells at least
  two facts of the kind (working directory, platform, git status ...);
- a reminder: any other block whose tag has `reminder` in it;
- in system text, another block keeps the cause `system`, with its tag as the detail.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, zip_longest

MEMORY, ENVIRONMENT, REMINDER = "scaffold:memory", "scaffold:environment", "scaffold:reminder"

_TAG = r"(?P<tag>[A-Za-z][\w-]{0,60})(?: [^<>\n]{0,120})?>"
_OPEN = re.compile(rf"^[ \t]*<{_TAG}", re.MULTILINE)
_CLOSE = re.compile(rf"</{_TAG}[ \t]*\n*")
#: Headings that begin a memory file: they say where a text is from, and name a file as such files are named.
_FILES = (
    r"(?:AGENTS|CLAUDE|GEMINI|QWEN|CONVENTIONS|copilot-instructions)\.md|\.(?:clinerules|cursorrules|windsurfrules)"
)
_HEADING = re.compile(
    r"^(?=[^\n]{0,300}$)(?:#{1,4} (?=[^\n]*/)|(?:[-=]{3} )?(?:Contents of|Instructions from|Context from):? )"
    rf"[^\n]*?(?<![\w-])(?P<file>{_FILES})(?![\w-])[^\n]*\n",
    re.MULTILINE,
)
_FACTS = re.compile(
    r"(?im)^[^\n]{0,30}\b(working directory|current directory|(?:working|currently) in the directory|operating system|"
    r"os version|git ?status|git repo(?:sitory)?|current branch|platform|shell|today'?s date|current date|ide|"
    r"folder structure|workspace roots?)\b\W"
)
_ENVIRONMENT_TAG = re.compile(r"(?i)(?:^|[_-])(?:env|environment|workspace|session)(?:$|[_-])")
_SECTION = re.compile(
    r"^#{1,3} [^\n]{0,80}\b(?i:environment|workspace)\b[^\n]{0,80}\n(?:\n*[^\n]+\n)(?:[^\n]+(?:\n|\Z))*", re.MULTILINE
)
#: Characters of a block of system text that is told by its tag: an example of two lines is not.
_TOLD = 400
#: Characters of a text that is looked through: what is longer is no text of a harness.
_MOST = 400_000
#: Memory files looked for in one text.
_HEADINGS = 20


def pieces(text: str, role: str) -> Iterator[tuple[str, str]]:
    """The text in pieces that join to it, each with its cause, "" for what shows no structure of this kind.

    `role` is the message's: results of tools are looked through for reminders alone, since a file may hold any tag.
    """
    if role not in ("system", "user", "tool") or len(text) > _MOST:
        yield text, ""
        return
    blocks = list(_blocks(text))
    told = [(start, end, cause) for start, end, tag in blocks if (cause := _of_block(tag, text[start:end], role))]
    marks = list(told)  # of which later ones hold over earlier ones
    if role == "system":
        sections = (match for match in _SECTION.finditer(text) if _tells_facts(match.group()))
        marks = [*((*match.span(), f"{ENVIRONMENT}/section") for match in sections), *told]
    if role != "tool":
        marks += _memory(text, role, blocks, told)
    causes = [""] * len(text) if marks else []  # of each character
    for start, end, cause in marks:
        causes[start:end] = [cause] * (end - start)
    at = 0
    for cause, run in groupby(causes):
        end = at + sum(1 for _ in run)
        yield text[at:end], cause
        at = end
    yield text[at:], ""


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Find the outermost blocks: begin, end and tag, in time that grows with the text's length alone."""
    closed: dict[str, list[tuple[int, int]]] = {}
    for close in _CLOSE.finditer(text):
        closed.setdefault(close["tag"], []).append(close.span())
    at = 0
    for opened in _OPEN.finditer(text):
        ends = closed.get(opened["tag"], [])
        found = bisect_left(ends, (opened.end(), 0))
        if opened.start() >= at and found < len(ends):
            at = ends[found][1]
            yield opened.start(), at, opened["tag"]


def _of_block(tag: str, block: str, role: str) -> str | None:
    """The cause of a block, `None` where it is nothing of the kind."""
    reminds = "reminder" in tag.lower()
    if role == "tool":
        return f"{REMINDER}/{tag}" if reminds else None
    if _ENVIRONMENT_TAG.search(tag) or (reminds and _tells_facts(block)):
        return f"{ENVIRONMENT}/{tag}"
    if reminds or _HEADING.search(block):
        return f"{REMINDER}/{tag}"
    return f"system/{tag}" if role == "system" and len(block) >= _TOLD else None


def _memory(
    text: str, role: str, blocks: Sequence[tuple[int, int, str]], told: Sequence[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Find memory files: begin, end and cause.

    One that has no end of its own reaches to the end of the block that its heading stands right before, else to the
    next one, else to the end of the block that it stands in, or to the next block in system text.  In a user's message
    the task may follow.
    """
    headings = list(islice(_HEADING.finditer(text), _HEADINGS))
    for heading, following in zip_longest(headings, headings[1:]):
        start, after = heading.span()
        begin, end = next(((b[0], b[1]) for b in blocks if b[0] >= after), (len(text), 0))
        opened, closed = next(((b[0], b[1]) for b in told if b[1] > start), (len(text), 0))
        inside = opened <= start
        last = text.rindex("</", opened, closed) if inside else opened
        said = re.compile(rf"^[^\n]*\bEnd of\b[^\n]*{re.escape(heading['file'])}[^\n]*\n?", re.MULTILINE)
        if end and not text[after:begin].strip():
            last = end
        elif (own := said.search(text, after, last)) is not None:
            last = own.end()
        elif following is not None and following.start() < last:
            last = following.start()
        elif not inside and role != "system":
            continue
        yield start, last, f"{MEMORY}/{heading['file']}"


def _tells_facts(text: str) -> bool:
    return len({fact.lower() for fact in _FACTS.findall(text)}) > 1
