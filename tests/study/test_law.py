"""The law of a loop's tokens, against sums over requests made one by one."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.study import LoopTokens

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
numbers = st.integers(0, 5_000)


@given(numbers, numbers, numbers, numbers, numbers, st.integers(1, 40), st.sampled_from([1.0, 0.5, 0.1, 0.0]))
def test_a_bill_is_the_sum_of_requests(
    once: int, per_turn: int, schemas: int, reply: int, result: int, turns: int, price: float
) -> None:
    law = LoopTokens(once, per_turn, schemas, reply, result)
    sent, total = 0, 0.0
    for turn in range(1, turns + 1):
        now = once + schemas + per_turn * turn + (reply + result) * (turn - 1)
        total += now - sent + price * sent
        assert law.window(turn) == now
        sent = now
    assert law.bill(turns, price) == pytest.approx(total)


def test_a_line_is_fitted_to_requests() -> None:
    law = LoopTokens.fit([130, 170, 210, 250])
    assert (law.once, law.per_turn) == (pytest.approx(90), pytest.approx(40))
    with pytest.raises(ValueError, match="at least two"):
        LoopTokens.fit([100])


def test_a_short_session_predicts_a_long_one_of_every_agent() -> None:
    """The finding of experiments/overhead, derived again from the recorded requests."""
    np = pytest.importorskip("numpy")
    requests: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for line in (EXPERIMENTS / "harness_tax" / "results" / "requests.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["main"] and row["condition"] == "bare":
            causes = ["task", "assistant", "tool_result", "user"]
            causes += ["scaffold:repeated"] if row["agent"] == "tool_loop_agent" else []  # lines of its results
            work = sum(row["causes"].get(cause, 0) for cause in causes)
            requests[row["agent"], row["turns"]].append((row["input_tokens"], work))
    errors: dict[str, float] = {}
    for agent in {agent for agent, _ in requests}:
        frame = [tokens - work for tokens, work in requests[agent, 10]][4:]
        slope, once = np.polyfit(range(5, 11), frame, 1)
        long = list(enumerate(requests[agent, 25], 1))[10:]
        errors[agent] = max(abs(once + slope * turn + work - tokens) / tokens for turn, (tokens, work) in long)
    assert max(errors.values()) < 0.018
    assert (len(errors), sum(error < 0.006 for error in errors.values())) == (23, 22)
    with (EXPERIMENTS / "overhead" / "results" / "law.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if int(row["turn"]) > 10]
    written = {a: max(abs(float(r["law"]) / float(r["tokens"]) - 1) for r in rows if r["agent"] == a) for a in errors}
    assert written == pytest.approx(errors, abs=2e-3)


@pytest.mark.parametrize(("dialect", "terms_of_a_request"), [("parallel", 5), ("code", 4)])
def test_a_formula_predicts_bills_of_unseen_shapes(dialect: str, terms_of_a_request: int) -> None:
    """The break-even of experiments/overhead, derived again: no shape with 3 steps or 2 calls was fitted to."""
    np = pytest.importorskip("numpy")
    with (EXPERIMENTS / "overhead" / "results" / "break_even.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["dialect"] == dialect]
    known: list[tuple[list[int], int]] = []
    unseen: list[tuple[list[list[int]], int]] = []
    for row in rows:
        sizes = json.loads(row["requests"])
        tools, fan, size = (int(row[name]) for name in ("tools", "fan", "size"))
        terms = [[1, tools, t, t * fan, t * fan * size][:terms_of_a_request] for t in range(len(sizes))]
        if row["steps"] == "3" or row["fan"] == "2":
            unseen.append((terms, sum(sizes)))
        else:
            known.extend(zip(terms, sizes, strict=True))
    fitted = np.linalg.lstsq(np.array([t for t, _ in known], float), np.array([s for _, s in known], float), None)[0]
    errors = [abs(float((np.array(terms) @ fitted).sum()) / bill - 1) for terms, bill in unseen]
    assert len(errors) == 30
    assert max(errors) < 0.007
