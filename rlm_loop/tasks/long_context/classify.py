"""Pieces that somebody has to read: documentation strings, of which the topic is asked (in the manner of OOLONG).

The topic of a piece is the module that it was taken from, so the truth is exact as to its origin; as in every set of
labelled texts, a few pieces fit another topic as well.  No pattern over the text gives the topic.
"""

from __future__ import annotations

import functools
import sysconfig
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rlm_loop.tasks.long_context.draw import Draw
from rlm_loop.tasks.long_context.plan import INTEGER, Line, Plan
from rlm_loop.tasks.long_context.text import docstrings

#: Topic to the files and packages of the standard library that are about it.
TOPICS: Mapping[str, tuple[str, ...]] = {
    "e-mail": ("email", "mailbox.py", "smtplib.py", "imaplib.py", "poplib.py"),
    "unit tests": ("unittest", "doctest.py"),
    "numbers": ("_pydecimal.py", "fractions.py", "statistics.py", "random.py", "numbers.py"),
    "archives": ("zipfile.py", "zipfile", "tarfile.py", "gzip.py", "bz2.py", "lzma.py"),
    "XML and HTML": ("xml", "html"),
}
SHORTEST, LONGEST = 45, 120
_FORM = 'Each line of the context that starts with "Entry #" is the documentation of a Python function or class.'
_TOPICS = f"Each entry is about one of these topics: {', '.join(TOPICS)}."


@functools.cache
def pieces() -> Mapping[str, tuple[str, ...]]:
    """Topic to the first paragraphs of its documentation strings, each on one line, none in two topics."""
    home = Path(sysconfig.get_path("stdlib"))
    found: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for topic, places in TOPICS.items():
        for place in places:
            path = home / place
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
            for file in files:
                if "test" not in file.relative_to(home).parts[1:]:
                    found[topic] += [_paragraph(text) for text in docstrings(file)]
    owners = Counter(text for texts in found.values() for text in set(texts))
    return {
        topic: tuple(t for t in dict.fromkeys(texts) if SHORTEST <= len(t) <= LONGEST and t.isascii() and owners[t] < 2)
        for topic, texts in found.items()
    }


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def classify(draw: Draw, size: int, variant: int) -> Plan:
    """Counts by topic, the most frequent topic, and counts by topic and user; an entry in about 150 characters, at
    most 50,000."""
    n = min(50_000, size // 150)
    first, *others = draw.shuffled(list(TOPICS))
    # two parts in six are of the first topic, so that the most frequent one is well defined
    labels = [draw.pick([first, first, *others]) for _ in range(n)]
    users = [1 + draw.below(4) for _ in range(n)]
    seeds = [draw.random() for _ in range(n)]
    place = draw.below(n)
    topic, user = labels[place], users[place]  # so that no truth is 0
    truth: int | str
    if variant % 3 == 0:
        asked, truth = f"How many entries are about {topic}? {INTEGER}", labels.count(topic)
    elif variant % 3 == 1:
        for number in range(n):  # chance may favour another one in a short text
            ranked = Counter(labels).most_common(2)
            if ranked[0][0] == first and (len(ranked) < 2 or ranked[0][1] > ranked[1][1]):
                break
            labels[number] = first
        asked, truth = "Which topic do most entries have? Answer with the topic only.", first
    else:
        asked = f"How many entries of user {user} are about {topic}? {INTEGER}"
        truth = sum(t == topic and u == user for t, u in zip(labels, users, strict=True))

    def lines() -> list[Line]:
        known = pieces()
        return [
            Line(f"Entry #{number} (user {user}): {known[topic][int(seed * len(known[topic]))]}")
            for number, (topic, user, seed) in enumerate(zip(labels, users, seeds, strict=True), 1)
        ]

    return Plan(f"{_FORM} {_TOPICS} {asked}", truth, lines)
