"""The study of `experiments/noise_floor`: wordings of equal meaning, arms, tasks, its finding from scripted rows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import dry_study as dry
import pytest

from experiments.noise_floor.paraphrases import wordings
from experiments.tuning.best import RESULTS, chosen
from experiments.tuning.study import best
from experiments.tuning.texts import CANDIDATES
from rlm_loop.study import Analysis, StudyError, load_study

pytest.importorskip("pandas")

NAME = "noise_floor"
#: Every text that may be the one chosen: the candidates of the second round, and the package's own.
TEXTS = {
    **{arm: CANDIDATES[loop][arm] for loop in CANDIDATES for arm in best(load_study(RESULTS / "round1"), loop)},
    **{loop: one.make for loop, one in chosen("default").items()},
}


def text_of(name: str) -> str:
    return TEXTS[name](model="local").settings()["dialect"]["rule"]


def test_fifteen_arms_meet_16_tasks_twice() -> None:
    study = dry.loaded(NAME)
    by_arm, by_suite = dry.count(study)
    assert by_arm == {f"{loop}-w{n}": 32 for loop in ("code", "lean", "react") for n in range(1, 6)}
    assert by_suite == {f"{suite}/test": 4 for suite in ("computation", "tables", "frames", "humaneval")}
    assert dry.outside(study, "test") == []
    assert study.analysis == Analysis(baseline="code-w1", family=("resolved",), missing="worst")


def test_what_differs_is_declared_and_needed() -> None:
    study = dry.loaded(NAME)
    assert dry.differing(study) == set(study.differs or ())


@pytest.mark.parametrize("name", TEXTS)
def test_paraphrases_keep_what_a_loop_reads(name: str) -> None:
    """Names of tools and variables, labels, code and calls are in all five; no two are alike."""
    said = wordings(text_of(name))
    assert said[0] == text_of(name)
    assert len(set(said)) == len(said) == 5
    words = r"final_answer|\bpython\b|REPL|Thought|Action Input|Action|Observation|```python|\bfinish\b(?= has|\n|$)"
    kept = [
        sorted(
            {*re.findall(words, text)}
            | {
                line
                for line in text.splitlines()
                if line[:1] == "{" or line.startswith(("Action", "Thought:", "print"))
            }
        )
        for text in said
    ]
    assert kept == [kept[0]] * 5
    lengths = [len(text) for text in said]
    assert max(lengths) <= 1.2 * min(lengths)


def test_a_text_without_paraphrases_is_refused() -> None:
    with pytest.raises(StudyError, match="there are no paraphrases of the text 'Do it"):
        wordings("Do it.")


@pytest.mark.slow
def test_its_finding_tells_noise_from_wording(tmp_path: Path) -> None:
    from experiments.noise_floor.finding import claims, components, figure, finding, frame, spans, twice

    results = dry.run_by_script(NAME, tmp_path, 4)
    assert not results.crashed
    assert len(frame(results)) == 15 * 4 * 2
    assert set(frame(results)["loop"]) == {"code", "lean", "react"}
    assert "| code | 0 of 20 |" in twice(results)
    assert "the means of the loops lie" in spans(results)
    assert "Of the 14 declared claims" in claims(results)
    assert figure(results).get_axes()
    if importlib.util.find_spec("rlm_loop.study.statistics.variance") is not None:
        assert components(results) in finding(results)
