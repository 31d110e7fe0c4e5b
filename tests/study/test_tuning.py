"""The tuning of the loops' texts: equal effort, and no task that results are reported on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from experiments.tuning.study import FIRST, KEPT, SECOND, best, study, tasks_of
from experiments.tuning.texts import CANDIDATES
from rlm_loop.study import StudyError
from rlm_loop.tasks import get_suite


class Rows:
    """Results with these rows."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.rows = rows


def rows(loop: str, resolved: dict[str, int]) -> Iterator[dict[str, object]]:
    for number, arm in enumerate(CANDIDATES[loop]):
        for task in range(sum(FIRST.values())):
            right = task < resolved.get(arm, 0)
            yield {"arm": arm, "resolved": right, "input_tokens": 100 - number, "output_tokens": 0}


def test_every_loop_has_as_many_candidates_and_none_twice() -> None:
    assert {len(arms) for arms in CANDIDATES.values()} == {8}
    made = [str(agent().settings()) for arms in CANDIDATES.values() for agent in arms.values()]
    assert len(set(made)) == len(made)


def test_tasks_are_of_the_dev_splits_and_of_one_round_each() -> None:
    pytest.importorskip("pandas")
    first, second = ({t.id for suite in tasks_of(n) for t in suite} for n in (1, 2))
    assert (len(first), len(second)) == (sum(FIRST.values()), sum(SECOND.values())) == (12, 36)
    test = {task.id for name in FIRST for task in get_suite(f"{name}/test")}
    assert not first & second
    assert not (first | second) & test


def test_the_best_go_on_and_fewer_tokens_decide_between_equals() -> None:
    names = list(CANDIDATES["lean"])
    kept = best(Rows([*rows("lean", {names[0]: 3, names[2]: 5, names[3]: 3, names[5]: 3})]), "lean")  # pyright: ignore[reportArgumentType]
    assert kept == [names[2], names[5], names[3]]
    assert len(kept) == KEPT


def test_a_round_that_is_not_finished_is_said() -> None:
    with pytest.raises(StudyError, match="first round is not finished"):
        best(Rows([*rows("code", {})][:-1]), "code")  # pyright: ignore[reportArgumentType]


def test_the_first_round_is_every_candidate_on_twelve_tasks() -> None:
    pytest.importorskip("pandas")
    assert len(study().episodes()) == 24 * 12
