"""What stands side by side says the same: p and interval, table and sentence, on any outcome of any study."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paired_rows import Pair, paired

from rlm_loop.report import effect_table
from rlm_loop.study import Analysis, Comparison, Contrast, Results, compare
from rlm_loop.study.compare.contrast import p_value, percent

pytestmark = pytest.mark.slow

NAMES = {"resolved": "tasks resolved", "input_tokens": "prompt tokens"}

WORDS = st.sampled_from("ynnyy!u?")
STUDIES = st.tuples(
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2]),
    st.sampled_from(["worst", "bounds"]),
    st.sampled_from([0.0, 0.03, 0.2]),
)


def study(pairs: list[Pair], seed: int, seeds: int) -> Results:
    """Tokens with heavy tails, and often none at all."""
    rng = np.random.default_rng(seed)
    used = rng.lognormal(5, 1, (len(pairs), 2)) * (rng.random((len(pairs), 2)) > 0.1 * (seed % 3))
    used[:, 0] *= rng.choice([0.5, 0.9, 1.0])
    return paired(pairs, tokens=[(round(h), round(t)) for h, t in used.tolist()], seeds=seeds)


def excludes(contrast: Contrast, margin: float) -> bool:
    """Whether the interval excludes what is claimed against."""
    if contrast.effect == "difference" and margin:
        return contrast.low > -margin
    null = 1.0 if contrast.effect == "ratio" else 0.0
    return contrast.low > null or contrast.high < null


def agrees(compared: Comparison) -> None:
    for c in compared.contrasts:
        p = c.p if c.p_holm is None else c.p_holm
        if p is not None and c.low is None:  # a ratio of few tasks has no interval
            assert c.effect == "ratio"
        elif p is not None:
            assert (p <= compared.alpha) == excludes(c, compared.margin), c
            assert c.holds <= (p <= compared.alpha)
        if c.estimate is not None and c.low is not None and c.high is not None:
            assert c.low - 1e-9 <= c.estimate <= c.high + 1e-9


def table_agrees(compared: Comparison) -> None:
    """Each row of the page's table has the p and the level of its interval, and the sentences say the same."""
    table, said = effect_table(compared), compared.sentences()
    judged = ["p"] * bool(compared.family)
    assert [name for name in table.columns if name.startswith("p")] == [*judged, "pairs"]
    if compared.exploratory:
        assert not [s for s in said[:-1] if " p = " in s or "p <" in s], "no p where nothing was declared"
    of = {(row["arm"], row["measure"]): row for row in (dict(zip(table.columns, r, strict=True)) for r in table.rows)}
    for c in compared.contrasts:
        row = of.get((c.arm, NAMES.get(c.measure, c.measure.replace("_", " "))))
        p = c.p_holm
        if row is None or c.estimate is None:
            continue
        assert row["p"] == ("-" if p is None else p_value(p)), "a p stands beside the interval that was judged with it"
        effect = next(text for name, text in row.items() if name.startswith("effect [95 % CI]"))
        if c.low is None or c.high is None:
            assert effect.endswith("[no interval]")
        else:
            assert (percent(c.confidence) in effect) == (c.confidence != 1 - compared.alpha)
        if c.measure in compared.family and p is not None:
            shown = "yes" if c.holds else "no"
            assert row["shown"] == ("not judged" if compared.exploratory else shown), "only what was declared is shown"
            assert row["shown"] != "yes" or any(s.startswith("Shown") and p_value(p) in s for s in said)
        else:
            assert row["shown"] in ("described", "no")


@settings(max_examples=60, deadline=None)
@example(([("y", "y")] * 7, 188, 1, "worst", 0.0))  # an interval without an upper end
@given(STUDIES)
def test_the_p_is_small_exactly_where_the_interval_excludes(made: Any) -> None:
    pairs, seed, seeds, policy, margin = made
    compared = compare(study(pairs, seed, seeds), analysis=Analysis("base", margin, missing=policy))
    agrees(compared)
    table_agrees(compared)


@settings(max_examples=25, deadline=None)
@example([0, 1], 20)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=4), st.integers(6, 30))
def test_so_it_is_in_a_family_of_many_claims(seeds: list[int], n: int) -> None:
    """Borderline effects of several models, where Holm's procedure ends in the middle: a ratio whose own p is 0.05 and
    whose p after Holm is 0.1 has an interval that does not exclude 1."""
    rows: list[dict[str, Any]] = []
    for number, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        words: list[Pair] = [("y" if h else "n", "y" if t else "n") for h, t in rng.random((n, 2)) < [0.8, 0.6]]
        tokens = [(round(100 * math.exp(rng.normal(0.25, 0.5))), 100) for _ in words]
        rows += paired(words, tokens=tokens, model=f"local:{number}").rows
    compared = compare(Results(rows), analysis=Analysis("base"))
    agrees(compared)
    assert (compared.exploratory, "no claim is judged" in str(compared)) == (True, True)


@pytest.mark.parametrize("here", [0.0, 0.5])
def test_there_is_no_multiple_of_nothing(here: float) -> None:
    rows = [{**r, "cost": here if r["arm"] == "lean" else 0.0} for r in paired([("y", "y")] * 12).rows]
    found = compare(Results(rows), analysis=Analysis("base", family=("cost",)))
    cost = next(c for c in found.contrasts if c.measure == "cost")
    assert (cost.estimate, cost.value, cost.baseline_value, cost.missing) == (None, here, 0.0, 0)
    assert "there is no ratio of cost, as it is 0 in a pair" in " ".join(found.sentences())
