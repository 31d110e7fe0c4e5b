"""Blocks that an agent puts around a prompt, told by structure alone.

Nothing of any agent is known here.  The structure is tags in lines of their own, headings, trees of files, and the
names that memory files have by custom.  Text that shows no such structure stays what it was.

- a memory file: from a heading that names one (`# AGENTS.md instructions for /x`, `Contents of /x/CLAUDE.md`) to the
  end that is said, else of the block it stands in or before, else (in system text) of the text;
- environment: a block whose tag says so (`<environment_context>`, `<env>`), a section or a reminder that tells at least
  two facts of the kind (working directory, platform, git status ...), and trees of files;
- a reminder: any other block whose tag has `reminder` in it;
- in system text, another block keeps the cause `system`, with its tag as the detail.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

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
_LINE = 400  # characters of a heading and of what may stand between it and a tag
_TITLE = re.compile(_HEADING.pattern + r"\s*\Z", re.MULTILINE)
_TREE = re.compile(r"(?:^[ \t│|]*[├└][^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
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
    at = 0
    for start, end, tag in _blocks(text):
        block = text[start:end]
        titled = _TITLE.search(text, max(at, start - _LINE), start) if role != "tool" else None
        if titled is not None:  # a memory file whose heading stands before the tag
            yield from _plain(text[at : titled.start()], role)
            yield text[titled.start() : end], f"{MEMORY}/{titled['file']}"
            at = end
        elif cause := _of_block(tag, block, role):
            yield from _plain(text[at:start], role)
            yield from _with_memory(block, cause)
            at = end
    yield from _plain(text[at:], role)


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
    if _ENVIRONMENT_TAG.search(tag):
        return f"{ENVIRONMENT}/{tag}"
    if reminds:
        found = {fact.lower() for fact in _FACTS.findall(block)}
        return f"{ENVIRONMENT}/{tag}" if len(found) > 1 else f"{REMINDER}/{tag}"
    if _HEADING.search(block):
        return f"{REMINDER}/{tag}"
    return f"system/{tag}" if role == "system" and len(block) >= _TOLD else None


def _with_memory(block: str, cause: str) -> Iterator[tuple[str, str]]:
    """A block, with the memory files in it, which reach to their own end or to the block's last tag."""
    at = 0
    for start, end, memory in _memory(block, block.rindex("</")):
        yield block[at:start], cause
        yield block[start:end], memory
        at = end
    yield block[at:], cause


def _memory(text: str, last: int) -> Iterator[tuple[int, int, str]]:
    """Memory files up to `last`, the latest place where one can end: begin, end and cause."""
    at, left = 0, _HEADINGS
    while left and (heading := _HEADING.search(text, at, last)) is not None:
        left -= 1
        at = _end(text, heading, last)
        yield heading.start(), at, f"{MEMORY}/{heading['file']}"


def _end(text: str, heading: re.Match[str], last: int) -> int:
    """Find where a memory file ends: at a line that says so, at the next one's heading, or at the last place it can."""
    said = re.compile(rf"^[^\n]*\bEnd of\b[^\n]*{re.escape(heading['file'])}[^\n]*\n?", re.MULTILINE)
    if (end := said.search(text, heading.end(), last)) is not None:
        return end.end()
    following = _HEADING.search(text, heading.end(), last)
    return last if following is None else following.start()


def _plain(text: str, role: str) -> Iterator[tuple[str, str]]:
    """Text outside of all blocks: sections on the environment, trees of files, and memory files.

    Of those in a user's message, where the task may follow, only such as say their end.
    """
    if role == "tool" or not text:
        yield text, ""
        return
    at = 0
    files = [found for found in _memory(text, len(text)) if role == "system" or found[1] < len(text)]
    for start, end, cause in sorted([*_environment(text, role), *files]):
        if start >= at:
            yield text[at:start], ""
            yield text[start:end], cause
            at = end
    yield text[at:], ""


def _environment(text: str, role: str) -> Iterator[tuple[int, int, str]]:
    for match in _SECTION.finditer(text) if role == "system" else ():
        if len({fact.lower() for fact in _FACTS.findall(match.group())}) > 1:
            yield match.start(), match.end(), f"{ENVIRONMENT}/section"
    for match in _TREE.finditer(text):
        yield match.start(), match.end(), f"{ENVIRONMENT}/files"
