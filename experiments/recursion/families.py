"""Lists of short texts that have to be understood: a count that no pattern finds, and that one call a text answers."""

from __future__ import annotations

import random
from collections.abc import Callable

from rlm_loop import Suite, Task
from rlm_loop.tasks import Split
from rlm_loop.tasks.match import Match

#: Texts in a list; so few that a model could also print and read them all.
LENGTH = 12
THINGS = {
    "an animal": "heron otter badger mule ferret lizard salmon beetle goat raven lynx toad moose wasp hare pigeon",
    "something to eat": "dumpling omelette radish pancake cheddar lentils waffle yoghurt pretzel apricot noodles bagel",
    "a musical instrument": "cello trombone banjo flute clarinet harp oboe tuba mandolin bassoon zither accordion",
    "a piece of clothing": "cardigan scarf mitten blouse trousers waistcoat beret sandal apron raincoat jersey sock",
    "a tool": "chisel pliers spanner mallet hacksaw trowel crowbar sickle rasp wrench axe screwdriver",
}
SENTENCES = (
    "Nobody had seen the {} since Tuesday.",
    "She drew the {} from memory, in blue ink.",
    "The {} was on the table when we came back.",
    "He asked twice how much the {} weighed.",
    "In the photograph the {} can be made out behind the door.",
    "They argued for an hour about the {}.",
    "My aunt has written a poem about her {}.",
    "The child pointed at the {} and laughed.",
)
GOOD: tuple[str, ...] = (
    "I would order it again tomorrow.",
    "We stayed two days longer than planned, that says it all.",
    "My sister has bought one too after trying mine.",
    "Not a single complaint after a year of daily use.",
    "It does what it says, and quietly.",
    "The waiter remembered our names; we felt at home.",
    "I had low hopes and was proved wrong.",
    "The ending had the whole room on its feet.",
    "Set up in five minutes, and it has run ever since.",
    "Nothing I could think of would make it better.",
    "Even my father, who dislikes everything, smiled.",
    "The old one is in the bin; this one stays.",
)
BAD: tuple[str, ...] = (
    "I sent it back the same evening.",
    "We left before the second course.",
    "After a week the handle came off.",
    "The manual is longer than the thing will live.",
    "Half of the audience was gone by the interval.",
    "I would have paid not to hear that again.",
    "It promised ten hours and gave me two.",
    "Nobody answered the phone, on any of three days.",
    "My dog refused it, and he eats slippers.",
    "Save your money and buy the older model.",
    "The room smelled of paint and the window was nailed shut.",
    "It worked once, in the shop.",
)
FORM = "The context is a list of {} texts. {} Answer with an integer."


def things(draw: random.Random) -> tuple[str, list[str], int]:
    """Return a question, the texts and the truth: how many sentences name a thing of a kind."""
    asked, *others = draw.sample(sorted(THINGS), 3)
    count = draw.randint(2, LENGTH - 3)
    named = draw.sample(THINGS[asked].split(), min(count, len(THINGS[asked].split())))
    rest = [name for kind in others for name in THINGS[kind].split()]
    nouns = named + draw.sample(rest, LENGTH - len(named))
    draw.shuffle(nouns)
    texts = [draw.choice(SENTENCES).format(noun) for noun in nouns]
    return f"How many of the texts mention {asked}?", texts, len(named)


def opinions(draw: random.Random) -> tuple[str, list[str], int]:
    """Return a question, the texts and the truth: how many reviews are content."""
    count = draw.randint(2, LENGTH - 3)
    texts = draw.sample(GOOD, count) + draw.sample(BAD, LENGTH - count)
    draw.shuffle(texts)
    if draw.random() < 0.5:
        return "Each text is from a review. How many of the reviewers are content?", texts, count
    return "Each text is from a review. How many of the reviewers are disappointed?", texts, LENGTH - count


FAMILIES: dict[str, Callable[[random.Random], tuple[str, list[str], int]]] = {"things": things, "opinions": opinions}


def family(name: str, split: Split, tasks: int) -> Suite:
    """Return tasks of a family, drawn anew for each split."""
    return Suite(
        f"{name}/{split}",
        tuple(_task(name, split, number) for number in range(tasks)),
        "counts over short texts that have to be understood",
        "Apache-2.0",
    )


def _task(name: str, split: Split, number: int) -> Task:
    asked, texts, truth = FAMILIES[name](random.Random(f"recursion/{name}/{split}/{number}"))
    question = FORM.format(LENGTH, asked)
    return Task(f"{name}-{number}", question, Match(truth), truth, context=texts)
