"""Whether a model goes on with the text of a public task word for word, as one that has seen it might.

It is given the first half of the text, and what it writes is compared with the rest.  The control is the same text with
other names for what it defines: whoever has learnt the task itself does as well on that, who has learnt the text does
not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rlm_loop.messages import Prompt
from rlm_loop.models.base import Model
from rlm_loop.tasks.base import Task

ASK = "Below is the beginning of a text. Write exactly what comes next, to its end, and nothing else.\n\n"
#: So many tokens in a row count as one piece of text.
GRAM = 6
_TOKEN = re.compile(r"\w+|[^\w\s]")
#: What a text in Python defines: functions, classes, arguments and variables.
_DEFINED = re.compile(
    r"\b(?:def|class)\s+(?P<name>\w+)|[(,]\s*(?P<argument>[^\W\d]\w*)\s*(?=[:,=)])"
    r"|^[ \t]*(?P<variable>[^\W\d]\w*)\s*=(?!=)|\bfor\s+(?P<loop>\w+)\b",
    re.MULTILINE,
)
_KEPT = frozenset(["self", "cls", "True", "False", "None"])
_NEW = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll", "larch")


@dataclass(frozen=True)
class Reproduced:
    """Of the `tokens` that were not shown, the `longest` run that the model wrote, and the share of its `GRAM`-grams.

    `share` is `None` where the rest is shorter than one.
    """

    tokens: int
    longest: int
    share: float | None


@dataclass(frozen=True)
class Contamination:
    """What a model reproduced of one task's text, and of the same text with other names (`None`: it defines none)."""

    task: str
    original: Reproduced
    control: Reproduced | None


def contamination(model: Model, tasks: Iterable[Task], *, gram: int = GRAM) -> Iterator[Contamination]:
    """Two calls a task, at temperature 0; a task of fewer than 2 lines and 8 tokens is left out."""
    for task in tasks:
        text, half = published_text(task)
        shown, rest = text[:half], text[half:]
        if not shown.strip() or not tokens(rest):
            continue
        names = other_names(text)
        original = _asked(model, shown, rest, gram)
        control = _asked(model, renamed(shown, names), renamed(rest, names), gram) if names else None
        yield Contamination(task.id, original, control)


def published_text(task: Task) -> tuple[str, int]:
    """The text of a task as it was published, and where its first half ends, at the end of a line.

    Where the solution begins with the question, as HumanEval's does, it is the text, and half of the question is shown.
    """
    text = length = task.question
    if isinstance(task.expected, str) and (of := _overlap(task.question, task.expected)):
        text, length = task.expected, task.expected[:of]
    lines = length.splitlines(keepends=True)
    if len(lines) > 1:
        return text, sum(len(line) for line in lines[: (len(lines) + 1) // 2])
    words = length.split(" ")
    return text, len(" ".join(words[: len(words) // 2])) if len(words) > 7 else 0


def _overlap(question: str, solution: str) -> int:
    """How much of the beginning of the solution is the end of the question."""
    lines = solution.strip("\n").splitlines()
    asked = question.rstrip("\n").splitlines()
    for size in range(min(len(lines), len(asked)), 1, -1):
        if lines[:size] == asked[-size:]:
            return solution.index(lines[0]) + len("\n".join(lines[:size])) + 1
    return 0


def other_names(text: str) -> dict[str, str]:
    """Another name for each function, class, argument and variable that the text defines."""
    defined = [name for found in _DEFINED.finditer(text) for name in found.groups() if name]
    names = [name for name in dict.fromkeys(defined) if name not in _KEPT and len(name) > 1]
    return {name: f"{_NEW[n % len(_NEW)]}{n // len(_NEW) or ''}" for n, name in enumerate(names)}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with these names; words of a docstring that are such a name change with it."""
    return re.sub(r"\w+", lambda word: names.get(word.group(), word.group()), text)


def tokens(text: str) -> list[str]:
    """Words and signs; white space is no token."""
    return _TOKEN.findall(text)


def reproduced(rest: str, written: str, shown: str = "", gram: int = GRAM) -> Reproduced:
    """How much of `rest` is in what was written, word for word; a share of what was not `shown` as well."""
    there, here = tokens(rest), tokens(written)
    longest = SequenceMatcher(None, there, here, autojunk=False).find_longest_match().size
    known, said = set(_grams(tokens(shown), gram)), set(_grams(here, gram))
    wanted = [one for one in _grams(there, gram) if one not in known]
    share = sum(one in said for one in wanted) / len(wanted) if wanted else None
    return Reproduced(len(there), longest, share)


def _grams(of: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(of[at : at + size]) for at in range(len(of) - size + 1))


def _asked(model: Model, shown: str, rest: str, gram: int) -> Reproduced:
    prompt = Prompt.ask(ASK + shown)
    reply = model.complete(Prompt(prompt.messages, sampling={"temperature": 0}), max_tokens=2 * len(tokens(rest)) + 32)
    return reproduced(rest, reply.text, shown, gram)
