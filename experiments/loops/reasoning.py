"""Tasks of reasoning-gym that one reply can solve, each judged by the verifier of its family.

Needs `pip install reasoning-gym` (Apache-2.0).  The tasks are drawn anew from a seed of each split.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from rlm_loop import Suite, Task
from rlm_loop.outcome import Score
from rlm_loop.tasks import Attempt
from rlm_loop.tasks.base import Split

#: Families whose answer a short program computes, and which guessing does not find.
FAMILIES = (
    "base_conversion",
    "calendar_arithmetic",
    "count_bits",
    "count_primes",
    "dice",
    "fraction_simplification",
    "group_anagrams",
    "largest_island",
    "letter_counting",
    "number_filtering",
    "number_sorting",
    "palindrome_partitioning",
    "prime_factorization",
    "rotate_matrix",
    "rotten_oranges",
    "shortest_path",
    "spiral_matrix",
    "time_intervals",
)
#: Of these, without three that no first reply solved in `experiments/recovery` and whose replies are the longest.
SHORT = tuple(name for name in FAMILIES if name not in ("dice", "rotten_oranges", "shortest_path"))
_SEEDS = {"dev": 20_261, "test": 20_262}


def reasoning(split: Split, each: int = 2, families: Sequence[str] = FAMILIES) -> Suite:
    """Return `each` tasks of every family, families in turn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of a package that reasoning-gym imports
        try:
            import reasoning_gym as gym  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError("these tasks are reasoning-gym's: pip install reasoning-gym") from None

    drawn: dict[str, Any] = {name: gym.create_dataset(name, size=each, seed=_SEEDS[split]) for name in families}
    tasks = [_task(name, number, drawn[name]) for number in range(each) for name in families]
    return Suite(f"reasoning/{split}", tuple(tasks), "reasoning-gym, by its verifiers", "Apache-2.0")


def _task(family: str, number: int, dataset: Any) -> Task:
    entry = dataset[number]
    return Task(
        f"{family}-{number}",
        entry["question"],
        partial(score, dataset, entry),
        entry["answer"],
        facts={"family": family},
    )


def score(dataset: Any, entry: Any, attempt: Attempt) -> Score:
    """Ask the family's verifier; only its full score counts as resolved."""
    if not attempt.answered or attempt.answer is None:
        return Score(False, 0.0, "no answer")
    text = attempt.answer if isinstance(attempt.answer, str) else _as_written(attempt.answer)
    try:
        value = float(dataset.score_answer(text.strip(), entry))
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # verifiers parse what they are given
        return Score(False, 0.0, f"the verifier could not read it: {error}"[:300])
    return Score(value >= 1.0, value)


def _as_written(value: Any) -> str:
    """Return a value in the form that the questions ask for: numbers in lines, lists of words as JSON."""
    if not isinstance(value, (list, tuple)) or not value:
        return str(value)
    rows: list[Any] = list(value)
    if all(isinstance(row, (list, tuple)) for row in rows):
        flat = [item for row in rows for item in row]
        return json.dumps(rows) if any(isinstance(item, str) for item in flat) else "\n".join(map(_as_written, rows))
    return str(rows) if any(isinstance(item, str) for item in rows) else " ".join(map(str, rows))
