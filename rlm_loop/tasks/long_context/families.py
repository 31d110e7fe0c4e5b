"""The families of questions: lookups, every record counted or compared, and pieces that somebody has to read.

`classify` is in the manner of OOLONG: the topic of a piece is the module that it was taken from, so the truth is exact
as to its origin; a few pieces fit another topic as well.  No pattern over the text gives the topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rlm_loop.tasks.long_context.plan import INTEGER, Draw, QuestionPlan
from rlm_loop.tasks.long_context.text import pieces

CITIES = (
    *("Lisbon", "Oslo", "Turin", "Gdansk", "Leeds", "Nantes", "Bergen", "Porto", "Seville", "Ghent"),
    *("Zagreb", "Malmo", "Basel", "Vienna", "Dublin", "Riga", "Athens", "Tallinn", "Prague", "Lyon"),
)
COLOURS = ("amber", "crimson", "ivory", "indigo", "scarlet", "violet", "olive", "silver", "copper", "emerald")
ANIMALS = ("tiger", "falcon", "otter", "badger", "heron", "lynx", "raven", "salmon", "beetle", "panther")


def needle(draw: Draw, size: int, variant: int) -> QuestionPlan:
    """A line, asked for by its words."""
    city = draw.pick(CITIES)
    value: str | int
    if variant % 2:
        line, unknown = f"The password of {city} is", "WORD"
        value = f"{draw.pick(COLOURS)}-{draw.pick(ANIMALS)}"
    else:
        line, unknown = f"The secret code of {city} is", "NUMBER"
        value = 100_000 + draw.below(900_000)
    asked = f'One line of the context reads "{line} {unknown}". What is {unknown}?'
    form = f"Answer with the {unknown.lower()} only."
    return QuestionPlan(f"{asked} {form}", value, lambda: [f"{line} {value}"])


def needles(draw: Draw, size: int, variant: int) -> QuestionPlan:
    """Sixteen lines of the same form, of which several are asked for: all of one key, or one of each of three keys."""
    cities = draw.some(CITIES, 11)
    numbers = draw.numbers(16, 100_000, 1_000_000)
    if variant % 2:
        asked = cities[:3]
        held = dict(zip(cities, numbers, strict=False))
        lines = draw.shuffled([_access(city, number) for city, number in held.items()])
        return QuestionPlan(
            'The context has lines of the form "The access code of CITY is NUMBER". What are the numbers of '
            f"{asked[0]}, {asked[1]} and {asked[2]}? Answer with a list of the three numbers in this order.",
            [held[city] for city in asked],
            lambda: lines,
            "list",
        )
    city, others = cities[0], cities[1:]
    mine = numbers[:6]
    lines = [_access(city, n) for n in mine]
    lines += [_access(other, n) for other, n in zip(others, numbers[6:], strict=True)]
    mixed = draw.shuffled(lines)
    return QuestionPlan(
        'The context has several lines of the form "The access code of CITY is NUMBER". What are all the numbers of '
        f"{city}? Answer with a list of numbers.",
        mine,
        lambda: mixed,
        "any_order",
    )


def _access(city: str, number: int) -> str:
    return f"The access code of {city} is {number}"


def chain(draw: Draw, size: int, variant: int) -> QuestionPlan:
    """A chain of three or five references among five others of the same length; its lines stand in no order."""
    hops = (3, 5)[variant % 2]
    names = draw.numbers((hops + 1) * 6, 1_000, 10_000)
    words = draw.some([f"{colour}-{animal}" for colour in COLOURS for animal in ANIMALS], 6)
    lines: list[str] = []
    for number, word in enumerate(words):
        mine = names[number * (hops + 1) : (number + 1) * (hops + 1)]
        lines += [f"Note {a}: go on with note {b}" for a, b in pairwise(mine)]
        lines.append(f"Note {mine[-1]}: the answer is {word}")
    mixed = draw.shuffled(lines)
    return QuestionPlan(
        'The context has lines such as "Note 17: go on with note 942" and "Note 58: the answer is WORD". Start at note '
        f"{names[0]} and follow the notes until one gives the answer. What is WORD? Answer with the word only.",
        words[0],
        lambda: mixed,
    )


STATUSES = ("paid", "paid", "open", "refunded")
_FORM = 'Some lines of the context are records such as "Record 17: city=Rome status=paid amount=250".'
_BADGES = 'Some lines of the context are like "Badge QX-417 was seen at gate 3".'
_PERSONS = 'Some lines of the context are like "Person 17 lives in Rome and was born in 1984".'


def records(draw: Draw, size: int, variant: int) -> QuestionPlan:
    """Counts and sums; one record in about 400 characters, at most 20,000."""
    cities = draw.some(CITIES, 6)
    numbers = range(1001, 1001 + min(20_000, size // 400))
    rows = [(n, draw.pick(cities), draw.pick(STATUSES), 10 + draw.below(990)) for n in numbers]
    city = draw.pick([row for row in rows if row[3] > 500] or rows)[1]  # so that no truth is 0

    asked, truth = (
        ("How many records have status=paid?", sum(s == "paid" for _, _, s, _ in rows)),
        (
            f"What is the sum of the amounts of the records with city={city}?",
            sum(a for _, c, _, a in rows if c == city),
        ),
        (
            f"How many records have city={city} and an amount above 500?",
            sum(c == city and a > 500 for _, c, _, a in rows),
        ),
        ("What is the sum of the amounts of the records with status=open?", sum(r[3] for r in rows if r[2] == "open")),
    )[variant % 4]
    return QuestionPlan(
        f"{_FORM} {asked} {INTEGER}",
        truth,
        lambda: [f"Record {n}: city={c} status={s} amount={a}" for n, c, s, a in rows],
    )


def identifiers(draw: Draw, size: int, variant: int) -> QuestionPlan:
    """Distinct and repeated identifiers; one sighting in about 400 characters, at most 20,000."""
    n = min(20_000, size // 400)
    letters = "ABCDEFGHKLMNPQRSTUVWXYZ"
    pool = [f"{draw.pick(letters)}{draw.pick(letters)}-{100 + number}" for number in range(max(6, n * 2 // 3))]
    seen = [draw.pick(pool) for _ in range(n)]
    gates = [1 + draw.below(9) for _ in seen]
    if variant % 4 == 3:
        _let_lead(seen, draw.pick(pool), draw.shuffled(range(n)))
    counts = Counter(seen)
    questions: Sequence[tuple[str, int | str]] = (
        (f"How many different badges are there? {INTEGER}", len(counts)),
        (f"How many badges were seen more than once? {INTEGER}", sum(c > 1 for c in counts.values())),
        (f"How many badges were seen exactly once? {INTEGER}", sum(c == 1 for c in counts.values())),
        ("Which badge was seen most often? Answer with the badge only.", counts.most_common(1)[0][0]),
    )
    asked, truth = questions[variant % 4]
    return QuestionPlan(
        f"{_BADGES} {asked}",
        truth,
        lambda: [f"Badge {b} was seen at gate {g}" for b, g in zip(seen, gates, strict=True)],
    )


def _let_lead(items: list[str], leader: str, places: Iterable[int]) -> None:
    """Put one in these places, until it is the most frequent by itself: so there is one right answer."""
    for place in places:
        ranked = Counter(items).most_common(2)
        if ranked[0][0] == leader and (len(ranked) < 2 or ranked[0][1] > ranked[1][1]):
            break
        items[place] = leader


def pairs(draw: Draw, size: int, variant: int) -> QuestionPlan:
    """Relations between any two records: quadratic in what has to be compared.  At most 4,000 persons."""
    n = min(4_000, size // 400)
    cities = draw.some(CITIES, 5)
    names = draw.numbers(n, 1_000, 100_000)
    rows = [(name, draw.pick(cities), 1950 + draw.below(20)) for name in names]
    years = Counter(year for _, _, year in rows)
    same = Counter((city, year) for _, city, year in rows)
    alike = sum(c * (c - 1) // 2 for c in same.values())
    if variant % 2:
        asked = "were born in the same year but live in different cities"
        truth = sum(c * (c - 1) // 2 for c in years.values()) - alike
    else:
        asked, truth = "live in the same city and were born in the same year", alike
    return QuestionPlan(
        f"{_PERSONS} How many pairs of two persons {asked}? Each pair counts once. {INTEGER}",
        truth,
        lambda: [f"Person {name} lives in {city} and was born in {year}" for name, city, year in rows],
    )


TOPICS = ("e-mail", "unit tests", "numbers", "archives", "XML and HTML")
_ENTRIES = 'Each line of the context that starts with "Entry #" is the documentation of a Python function or class.'
_TOPICS = f"Each entry is about one of these topics: {', '.join(TOPICS)}."


def classify(draw: Draw, size: int, variant: int) -> QuestionPlan:
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
        _let_lead(labels, first, range(n))  # chance may favour another one in a short text
        asked, truth = "Which topic do most entries have? Answer with the topic only.", first
    else:
        asked = f"How many entries of user {user} are about {topic}? {INTEGER}"
        truth = sum(t == topic and u == user for t, u in zip(labels, users, strict=True))

    def lines() -> list[str]:
        known = pieces()
        return [
            f"Entry #{number} (user {user}): {known[topic][int(seed * len(known[topic]))]}"
            for number, (topic, user, seed) in enumerate(zip(labels, users, seeds, strict=True), 1)
        ]

    return QuestionPlan(f"{_ENTRIES} {_TOPICS} {asked}", truth, lines)
