"""The findings of `experiments/overhead`, derived again from what is recorded."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


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
