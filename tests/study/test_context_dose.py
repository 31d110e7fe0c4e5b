"""The study of `experiments/context_dose`: doses of the line about a context, and the rule that chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dry_study as dry
import pytest

from experiments.context_dose.finding import choice, chosen_dose, figure, finding
from experiments.context_dose.study import DOSES, LOOPS
from rlm_loop.repl.contexts.preview import estimate_tokens
from rlm_loop.study import Results
from rlm_loop.tasks import Task

pytest.importorskip("pandas")

NAME = "context_dose"


def test_eight_arms_meet_24_tasks_of_the_dev_split() -> None:
    study = dry.loaded(NAME)
    by_arm, by_suite = dry.count(study)
    assert by_arm == {f"{loop}[context_tokens={dose}]": 24 for loop in LOOPS for dose in DOSES}
    assert by_suite == {"frames/dev": 24}
    assert dry.outside(study, "dev") == []
    assert study.analysis is None


def test_arms_of_a_loop_differ_in_the_line_alone() -> None:
    study = dry.loaded(NAME)
    # a grammar for replies, where the tuning chose one for the lean loop
    assert set(study.differs or ()) - dry.differing(study) == {"reply_format"}
    (arms,) = study.agents().values()
    for loop in LOOPS:
        said = [first_request(arms[f"{loop}[context_tokens={dose}]"], study.suites[0].tasks[0]) for dose in DOSES]
        assert len({before for before, _ in said}) == 1
        lines = [line for _, line in said]
        assert [len(line) for line in lines] == sorted({len(line) for line in lines})
        assert all(estimate_tokens(line) <= dose for line, dose in zip(lines, DOSES, strict=True))


def first_request(agent: Any, task: Task) -> tuple[str, str]:
    """What a run sends first, without its last line, and that line: it tells of the context."""
    text = "\n".join(message.text for message in agent.first_request(task).prompt.messages)
    before, _, line = text.rpartition("\n")
    return before, line


@pytest.mark.parametrize(
    ("resolved", "tokens", "dose"),
    [
        ({30: 1, 60: 2, 120: 3, 240: 3}, {120: 500, 240: 700}, 120),
        ({30: 1, 60: 3, 120: 3, 240: 2}, {60: 300, 120: 500}, 60),
        ({30: 0, 60: 0, 120: 0, 240: 0}, {30: 50, 60: 100, 120: 100, 240: 100}, 30),
    ],
)
def test_most_tasks_decide_and_then_fewest_tokens(resolved: dict[int, int], tokens: dict[int, int], dose: int) -> None:
    rows = [
        {
            "arm": f"{loop}[context_tokens={d}]",
            "arm_base": loop,
            "factors": {"context_tokens": d},
            "model": "m",
            "suite": "frames/dev",
            "task": f"t{n}",
            "seed": 0,
            "error": None,
            "resolved": n < count and loop == "code",
            "input_tokens": tokens.get(d, 400),
            "output_tokens": 0,
        }
        for d, count in resolved.items()
        for loop in LOOPS
        for n in range(4)
    ]
    assert chosen_dose(Results(rows)) == dose
    assert ("stays 60" in choice(Results(rows))) == (dose == 60)


def test_its_finding_is_made_from_rows(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    results = dry.run_by_script(NAME, tmp_path, 2)
    assert not results.crashed
    text = finding(results)
    assert all(f"{loop}[context_tokens={dose}]" in text for loop in LOOPS for dose in DOSES)
    assert figure(results).get_axes()
