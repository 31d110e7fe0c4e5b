"""Families that find something: one needle, several needles, and a chain in which each line names the next."""

from __future__ import annotations

from itertools import pairwise

from rlm_loop.tasks.long_context.draw import Draw
from rlm_loop.tasks.long_context.plan import Line, Plan

CITIES = (
    *("Lisbon", "Oslo", "Turin", "Gdansk", "Leeds", "Nantes", "Bergen", "Porto", "Seville", "Ghent"),
    *("Zagreb", "Malmo", "Basel", "Vienna", "Dublin", "Riga", "Athens", "Tallinn", "Prague", "Lyon"),
)
COLOURS = ("amber", "crimson", "ivory", "indigo", "scarlet", "violet", "olive", "silver", "copper", "emerald")
ANIMALS = ("tiger", "falcon", "otter", "badger", "heron", "lynx", "raven", "salmon", "beetle", "panther")


def needle(draw: Draw, size: int, variant: int) -> Plan:
    """One line, asked for by its words."""
    city = draw.pick(CITIES)
    if variant % 2:
        value = f"{draw.pick(COLOURS)}-{draw.pick(ANIMALS)}"
        return Plan(
            f'One line of the context reads "The password of {city} is WORD". What is WORD? Answer with the word only.',
            value,
            lambda: [Line(f"The password of {city} is {value}")],
        )
    number = 100_000 + draw.below(900_000)
    return Plan(
        f'One line of the context reads "The secret code of {city} is NUMBER". What is NUMBER? {_NUMBER}',
        number,
        lambda: [Line(f"The secret code of {city} is {number}")],
    )


_NUMBER = "Answer with the number only."


def needles(draw: Draw, size: int, variant: int) -> Plan:
    """Sixteen lines of the same form, of which several are asked for: all of one key, or one of each of three keys."""
    cities = draw.some(CITIES, 11)
    numbers = draw.numbers(16, 100_000, 1_000_000)
    if variant % 2:
        asked = cities[:3]
        held = dict(zip(cities, numbers, strict=False))
        lines = draw.shuffled([Line(_access(city, number), city in asked) for city, number in held.items()])
        return Plan(
            'The context has lines of the form "The access code of CITY is NUMBER". What are the numbers of '
            f"{asked[0]}, {asked[1]} and {asked[2]}? Answer with a list of the three numbers in this order.",
            [held[city] for city in asked],
            lambda: lines,
            "list",
        )
    city, others = cities[0], cities[1:]
    mine = numbers[:6]
    lines = [Line(_access(city, n)) for n in mine]
    lines += [Line(_access(other, n), False) for other, n in zip(others, numbers[6:], strict=True)]
    mixed = draw.shuffled(lines)
    return Plan(
        'The context has several lines of the form "The access code of CITY is NUMBER". What are all the numbers of '
        f"{city}? Answer with a list of numbers.",
        mine,
        lambda: mixed,
        "any_order",
    )


def _access(city: str, number: int) -> str:
    return f"The access code of {city} is {number}"


def chain(draw: Draw, size: int, variant: int) -> Plan:
    """A chain of three or five references among five others of the same length; its lines stand in no order."""
    hops = (3, 5)[variant % 2]
    names = draw.numbers((hops + 1) * 6, 1_000, 10_000)
    words = draw.some([f"{colour}-{animal}" for colour in COLOURS for animal in ANIMALS], 6)
    lines: list[Line] = []
    for number, word in enumerate(words):
        mine = names[number * (hops + 1) : (number + 1) * (hops + 1)]
        steps = [f"Note {a}: go on with note {b}" for a, b in pairwise(mine)]
        lines += [Line(text, number == 0) for text in (*steps, f"Note {mine[-1]}: the answer is {word}")]
    mixed = draw.shuffled(lines)
    return Plan(
        'The context has lines such as "Note 17: go on with note 942" and "Note 58: the answer is WORD". Start at note '
        f"{names[0]} and follow the notes until one gives the answer. What is WORD? Answer with the word only.",
        words[0],
        lambda: mixed,
    )
