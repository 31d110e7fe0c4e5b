"""What a study asks: in its own words, else in those of its experiment's README."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.report.run.marked import brief
from rlm_loop.study import Results

_MOST = 200  # characters of a heading


@dataclass(frozen=True)
class Question:
    """A heading, the paragraphs below it, and where both come from (empty: nowhere)."""

    title: str
    text: tuple[str, ...] = ()
    source: str = ""


def question_of(results: Results) -> Question:
    """The study's `question`; else the README of the experiment in whose folder the results lie; else its name."""
    own = str(results.lock.get("question") or "").strip()
    if own:
        first, *more = _paragraphs(own)
        whole = (first, *more) if len(first) > _MOST else tuple(more)
        return Question(brief(first, _MOST), whole, "study")
    told = _told(Path(results.folder)) if results.folder else None
    return told or Question(results.name or "A study", (), "")


def _told(folder: Path) -> Question | None:
    """The README beside the results, or in the folder above where that holds the experiment itself."""
    folder = folder.resolve()
    for place in (folder, folder.parent):
        if place is not folder and not any(place.glob("*study.py")):
            continue
        try:
            text = (place / "README.md").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        heading = re.search(r"^# +(.+)$", text, re.MULTILINE)
        asked = re.search(r"^## +Question *$\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
        if heading:
            below = _paragraphs(asked[1]) if asked else []
            return Question(brief(_plain(heading[1]), _MOST), tuple(below), f"{place.name}/README.md")
    return None


def _paragraphs(markdown: str) -> list[str]:
    return [_plain(part) for part in re.split(r"\n\s*\n", markdown.strip()) if part.strip()]


def _plain(markdown: str) -> str:
    """A paragraph of Markdown as text: links by their names, without marks of emphasis and code."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(markdown.split()))
    text = re.sub(r"`([^`]*)`", r"\1", text)
    return re.sub(r"(?<!\w)(\*\*|\*|__|_)(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
