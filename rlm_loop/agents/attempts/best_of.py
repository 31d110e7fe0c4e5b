"""Several independent attempts, of which one is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from rlm_loop.agents.attempts.around import Repeated, shaped
from rlm_loop.agents.attempts.attempts import Attempts, Tried, best_of_tried
from rlm_loop.agents.attempts.checks import Judge, passed_tests

Choose = Literal["check", "tests", "majority"]


@dataclass(frozen=True)
class BestOf(Repeated):
    """Up to `k` attempts with the seeds s, s+1, ... (s is the agent's, else 0), none told of the others.

    `choose`: by the `check` (the first that passes, and no further attempts are made), by the most `tests` of the
    check that passed (of equals the first), or by `majority`: the patch that most attempts made byte for byte (empty
    ones only count where all are; of equals the first).  A seed reaches a model that is given by name.  `check`,
    `oracle` and `budget` are as in `retry`.
    """

    k: int = 3
    _: KW_ONLY
    choose: Choose = "check"

    def __post_init__(self) -> None:
        if self.k < 1 or self.choose not in _CHOICES:
            raise ValueError(f"k is 1 or more, and choose one of {', '.join(_CHOICES)}")
        if self.choose == "majority" and (self.check is not None or self.oracle):
            raise ValueError('choose="majority" looks at the patches alone: leave check and oracle out')
        if self.choose == "tests" and self.oracle:
            raise ValueError('choose="tests" counts the tests of a check; an oracle only says yes or no')
        super().__post_init__()

    def _how(self) -> Mapping[str, Any]:
        return {"k": self.k, "choose": self.choose}

    def _judge(self) -> Judge | None:
        return None if self.choose == "majority" else super()._judge()

    def _go(self, attempts: Attempts) -> tuple[Tried | None, str]:
        agent = self.agents()[0]
        first: int = self.seed or getattr(agent, "seed", None) or 0
        for number in range(self.k):
            if number and (spent := attempts.spent()) is not None:
                return _CHOICES[self.choose](attempts.tried), spent
            one = attempts.make(shaped(agent, seed=first + number))
            if one.passed and self.choose == "check":
                break  # what is left could not do better
        return _CHOICES[self.choose](attempts.tried), ""


best_of = BestOf


def _most_tests(tried: Sequence[Tried]) -> Tried | None:
    return max(tried, key=lambda one: (one.passed, passed_tests(one.check)), default=None)


def _majority(tried: Sequence[Tried]) -> Tried | None:
    votes = Counter(one.patch for one in tried if one.patch.strip()) or Counter(one.patch for one in tried)
    return max((one for one in tried if one.patch in votes), key=lambda one: votes[one.patch], default=None)


_CHOICES: Mapping[str, Callable[[Sequence[Tried]], Tried | None]] = {
    "check": best_of_tried,
    "tests": _most_tests,
    "majority": _majority,
}
