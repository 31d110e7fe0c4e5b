"""The tuning of the loops' texts: equal effort, and no task that results are reported on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.tuning.best import RESULTS, chosen, winner
from experiments.tuning.study import FIRST, KEPT, SECOND, best, study, tasks_of
from experiments.tuning.texts import CANDIDATES
from rlm_loop.study import Results, StudyError, load_study
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


def both_rounds(loop: str, second: dict[str, int]) -> tuple[Results, Results]:
    """The committed first round, and a second one in which candidates resolve so many of 36."""
    first = load_study(RESULTS / "round1")
    made = [
        {"arm": arm, "resolved": task < count, "input_tokens": 100, "output_tokens": 0}
        for arm, count in second.items()
        for task in range(sum(SECOND.values()))
    ]
    return first, Results(made, {"name": "tuning-round2", "arms": {}})


@pytest.mark.parametrize(
    ("second", "free", "name"),
    [
        ((5, 9, 4), False, "lean-5-constrained"),
        ((5, 9, 4), True, "lean-8-example-function"),
        ((5, 5, 5), False, "lean-8-example-function"),  # 4 of 12 each in the first round: tokens decide
        ((5, 5, 7), False, "lean-3-example"),
    ],
)
def test_the_winner_is_that_of_both_rounds(second: tuple[int, ...], free: bool, name: str) -> None:
    through = best(load_study(RESULTS / "round1"), "lean")
    assert through == ["lean-8-example-function", "lean-5-constrained", "lean-3-example"]
    found = winner("lean", *both_rounds("lean", dict(zip(through, second, strict=True))), free=free)
    assert (found.name, found.constrained) == (name, name == "lean-5-constrained")


def test_a_second_round_that_is_not_whole_is_said(tmp_path: Path) -> None:
    first, second = both_rounds("code", dict.fromkeys(best(load_study(RESULTS / "round1"), "code"), 3))
    with pytest.raises(StudyError, match="second round is not finished for code-4-print-check: 35 of 36"):
        winner("code", first, Results(second.rows[1:], second.lock))
    with pytest.raises(StudyError, match=r"no second round of the tuning in .*texts=default"):
        chosen(round2=tmp_path / "none")


def test_a_text_that_was_changed_after_it_was_measured_is_refused() -> None:
    first, second = both_rounds("react", dict.fromkeys(best(load_study(RESULTS / "round1"), "react"), 3))
    other = {"agent": "ReActAgent", "system": "Another.", "presentation": None, "require_code": False}
    lock = {"name": "tuning-round2", "arms": {"react-4-example": {"m": {"settings": other}}}}
    with pytest.raises(StudyError, match="the text of react-4-example is not the one that tuning-round2 measured"):
        winner("react", first, Results(second.rows, lock))


@pytest.mark.parametrize("loop", CANDIDATES)
def test_each_loop_speaks_by_default_the_text_that_won(loop: str) -> None:
    won, own = (chosen(texts)[loop].make(model="local").settings() for texts in ("tuned", "default"))
    for name in ("rule", "presentation", "finish_with_result"):
        assert won["dialect"].get(name) == own["dialect"].get(name)
    assert won["require_code"] == own["require_code"]


def test_the_package_has_texts_of_its_own() -> None:
    assert {loop: one.make().system for loop, one in chosen("default").items()} == dict.fromkeys(CANDIDATES)
    with pytest.raises(StudyError, match="texts is tuned or default, not 'best'"):
        chosen("best")
