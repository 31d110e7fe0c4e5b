"""Variance components against published figures and the analysis of variance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rlm_loop.study import StudyError
from rlm_loop.study.statistics import variance_components

#: Yield of dyestuff, 5 samples of each of 6 batches: O. L. Davies (1947); Box & Tiao, Bayesian Inference (1973).
DYESTUFF = (
    (1545, 1440, 1440, 1520, 1580),
    (1540, 1555, 1490, 1560, 1495),
    (1595, 1550, 1605, 1510, 1560),
    (1445, 1440, 1595, 1465, 1545),
    (1595, 1630, 1515, 1635, 1625),
    (1520, 1455, 1450, 1480, 1445),
)


def crossed(tasks: int, *, spread: float = 0.3, alike: bool = False) -> pd.DataFrame:
    """Every task in 3 loops, twice, as a continuous outcome."""
    rng = np.random.default_rng(1)
    of_task, of_cell = rng.normal(0, spread, tasks), rng.normal(0, 0 if alike else 0.2, (tasks, 3))
    rows = [
        {"task": t, "arm": "abc"[a], "seed": s, "y": of_task[t] + 0.2 * a + of_cell[t, a] + rng.normal(0, 0.3)}
        for t in range(tasks)
        for a in range(3)
        for s in range(2)
    ]
    return pd.DataFrame(rows)


def variances(frame: pd.DataFrame) -> dict[str, float]:
    return dict(zip(frame["component"], frame["variance"], strict=True))


def test_the_published_components_of_the_dyestuff_yields() -> None:
    rows = [{"task": t, "run": r, "yield": y} for t, of in enumerate(DYESTUFF) for r, y in enumerate(of)]
    found = variance_components(pd.DataFrame(rows), "yield", resamples=20)
    # REML, as lme4 gives it: D. Bates and others, Journal of Statistical Software 67 (2015)
    assert variances(found)["task"] == pytest.approx(1764.05, rel=1e-3)
    assert variances(found)["run"] == pytest.approx(2451.25, rel=1e-3)
    known = found.set_index("component").loc[["task", "run"]]
    assert known["share"].sum() == pytest.approx(1)
    assert (known["low"] < known["variance"]).all()
    assert (known["variance"] < known["high"]).all()


def test_of_balanced_data_it_is_the_analysis_of_variance() -> None:
    frame = crossed(30)
    cell = frame.groupby(["task", "arm"])["y"].mean().unstack().to_numpy()
    whole, by_task, by_arm = cell.mean(), cell.mean(axis=1), cell.mean(axis=0)
    of_task = 6 * ((by_task - whole) ** 2).sum() / 29
    of_arm = 60 * ((by_arm - whole) ** 2).sum() / 2
    both = 2 * ((cell - by_task[:, None] - by_arm + whole) ** 2).sum() / 58
    rest = float(((frame["y"] - frame.groupby(["task", "arm"])["y"].transform("mean")) ** 2).sum()) / 90
    expected = {
        "task": (of_task - both) / 6,
        "loop": (of_arm - both) / 60,
        "interaction": (both - rest) / 2,
        "run": rest,
    }
    found = variances(variance_components(frame, "y", resamples=2))
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=2e-3)


def test_what_is_left_out_and_what_is_not_there_is_said() -> None:
    flat = pd.DataFrame([{"task": t, "seed": 0, "arm": a, "y": float(t % 2 != a)} for t in range(8) for a in (0, 1)])
    found = variance_components(flat, "y", resamples=2).set_index("component")
    assert found.loc["wording", "note"] == "left out: the frame has no column 'wording'"
    assert found.loc["run", "note"] == "left out: there is one run"
    assert found.loc["task", "variance"] == 0
    assert str(found.loc["task", "note"]).startswith("none was found (a singular fit)")
    assert found.loc["residual", "share"] == pytest.approx(1)


def test_where_nothing_varies_every_component_is_0() -> None:
    found = variance_components(pd.DataFrame({"task": [1, 2, 3], "y": [1.0, 1.0, 1.0]}), "y", ("task",), resamples=2)
    assert list(found["component"]) == ["task", "residual"]
    assert (found["variance"] == 0).all()


def test_resamples_that_cannot_be_fitted_are_counted() -> None:
    """Three tasks in two loops, twice: a resample of one task alone has a singular design."""
    rng = np.random.default_rng(0)
    rows = [
        {"task": t, "arm": "ab"[a], "seed": s, "resolved": bool(rng.integers(2))}
        for t in range(int(rng.integers(3, 6)))
        for a in range(2)
        for s in range(2)
    ]
    found = variance_components(pd.DataFrame(rows), resamples=10).set_index("component")
    assert found.loc["task", "note"] == "the interval is of 7 of 10 resamples, the others cannot be fitted"
    assert found.loc["task", "high"] > 0


def test_wordings_of_a_loop_are_compared_with_each_other() -> None:
    """Two loops of three wordings each: balanced, so the effects are means, and their variance is without the error."""
    rng = np.random.default_rng(2)
    effect = {"a": (0.0, 0.3, 0.9), "b": (2.0, 2.5, 2.4)}
    rows = [
        {"task": t, "loop": loop, "wording": f"{loop}{w}", "y": of_task + value + rng.normal(0, 0.2)}
        for t, of_task in enumerate(rng.normal(0, 1, 20))
        for loop, values in effect.items()
        for w, value in enumerate(values)
    ]
    frame = pd.DataFrame(rows)
    found = variances(variance_components(frame, "y", ("task", "loop", "wording"), resamples=2))
    mean = frame.groupby(["loop", "wording"])["y"].mean()
    within = ((mean - mean.groupby("loop").transform("mean")) ** 2).sum() / 4
    assert found["wording"] == pytest.approx(within - found["residual"] / 20, rel=1e-3)
    loops = mean.groupby("loop").mean()
    assert found["loop"] == pytest.approx(((loops - loops.mean()) ** 2).sum() - found["residual"] / 60, rel=1e-3)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"task": [1, 2], "y": [1.0, 0.0]}), "3 tasks or more"),
        (pd.DataFrame({"task": [1, 2, 3], "y": ["a", "b", "c"]}), "no number"),
        (pd.DataFrame({"task": [1, 2, 3]}), "no column 'y'"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        variance_components(frame, "y")
