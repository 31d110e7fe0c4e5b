"""Families that need every record: counts and sums, distinct and repeated identifiers, and pairs of records."""

from __future__ import annotations

from collections import Counter

from rlm_loop.tasks.long_context.draw import Draw
from rlm_loop.tasks.long_context.lookups import CITIES
from rlm_loop.tasks.long_context.plan import INTEGER, Line, Plan

STATUSES = ("paid", "paid", "open", "refunded")
_FORM = 'Some lines of the context are records such as "Record 17: city=Rome status=paid amount=250".'
_BADGES = 'Some lines of the context are like "Badge QX-417 was seen at gate 3".'
_PERSONS = 'Some lines of the context are like "Person 17 lives in Rome and was born in 1984".'


def records(draw: Draw, size: int, variant: int) -> Plan:
    """Counts and sums; one record in about 400 characters, at most 20,000."""
    cities = draw.some(CITIES, 6)
    numbers = range(1001, 1001 + min(20_000, size // 400))
    rows = [(n, draw.pick(cities), draw.pick(STATUSES), 10 + draw.below(990)) for n in numbers]
    city = draw.pick([row for row in rows if row[3] > 500] or rows)[1]  # so that no truth is 0

    def lines() -> list[Line]:
        return [Line(f"Record {n}: city={c} status={s} amount={a}") for n, c, s, a in rows]

    if variant % 4 == 0:
        asked, truth = "How many records have status=paid?", sum(s == "paid" for _, _, s, _ in rows)
    elif variant % 4 == 1:
        asked = f"What is the sum of the amounts of the records with city={city}?"
        truth = sum(a for _, c, _, a in rows if c == city)
    elif variant % 4 == 2:
        asked = f"How many records have city={city} and an amount above 500?"
        truth = sum(c == city and a > 500 for _, c, _, a in rows)
    else:
        asked = "What is the sum of the amounts of the records with status=open?"
        truth = sum(a for _, _, s, a in rows if s == "open")
    return Plan(f"{_FORM} {asked} {INTEGER}", truth, lines)


def identifiers(draw: Draw, size: int, variant: int) -> Plan:
    """Distinct and repeated identifiers; one sighting in about 400 characters, at most 20,000."""
    n = min(20_000, size // 400)
    letters = "ABCDEFGHKLMNPQRSTUVWXYZ"
    pool = [f"{draw.pick(letters)}{draw.pick(letters)}-{100 + number}" for number in range(max(6, n * 2 // 3))]
    seen = [draw.pick(pool) for _ in range(n)]
    gates = [1 + draw.below(9) for _ in seen]
    if variant % 4 == 3:  # one that leads, so that there is one right answer
        leader = draw.pick(pool)
        for place in draw.shuffled(range(n)):
            ranked = Counter(seen).most_common(2)
            if ranked[0][0] == leader and (len(ranked) < 2 or ranked[0][1] > ranked[1][1]):
                break
            seen[place] = leader
    counts = Counter(seen)
    truth: int | str
    if variant % 4 == 0:
        asked, truth = f"How many different badges are there? {INTEGER}", len(counts)
    elif variant % 4 == 1:
        asked, truth = f"How many badges were seen more than once? {INTEGER}", sum(c > 1 for c in counts.values())
    elif variant % 4 == 2:
        asked, truth = f"How many badges were seen exactly once? {INTEGER}", sum(c == 1 for c in counts.values())
    else:
        asked, truth = "Which badge was seen most often? Answer with the badge only.", counts.most_common(1)[0][0]
    return Plan(
        f"{_BADGES} {asked}",
        truth,
        lambda: [Line(f"Badge {b} was seen at gate {g}") for b, g in zip(seen, gates, strict=True)],
    )


def pairs(draw: Draw, size: int, variant: int) -> Plan:
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
    return Plan(
        f"{_PERSONS} How many pairs of two persons {asked}? Each pair counts once. {INTEGER}",
        truth,
        lambda: [Line(f"Person {name} lives in {city} and was born in {year}") for name, city, year in rows],
    )
