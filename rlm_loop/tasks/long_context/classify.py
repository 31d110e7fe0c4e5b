"""Pieces that somebody has to read: documentation strings, of which the topic is asked (in the manner of OOLONG).

The topic of a piece is the module that it was taken from, so the truth is exact as to its origin; as in every set of
labelled texts, a few pieces fit another topic as well.  No pattern over the text gives the topic.
"""

from __future__ import annotations

from collections import Counter

from rlm_loop.tasks.long_context.draw import Draw
from rlm_loop.tasks.long_context.plan import INTEGER, Line, Plan
from rlm_loop.tasks.long_context.text import pieces

TOPICS = ("e-mail", "unit tests", "numbers", "archives", "XML and HTML")
_FORM = 'Each line of the context that starts with "Entry #" is the documentation of a Python function or class.'
_TOPICS = f"Each entry is about one of these topics: {', '.join(TOPICS)}."


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
