"""Tables and figures over the size of the context."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_rows import made_results

from rlm_loop.report import by_size, save, size_figure, size_table
from rlm_loop.study import Results, StudyError

ARMS = {"direct": (0.5, 100, 1, 1.0), "depth-0": (0.5, 100, 1, 1.0)}


def sized() -> Results:
    results = made_results(tasks=6, arms=ARMS)
    for row in results.rows:
        number = int(row["task"].split("-")[1])
        row["facts"] = {"size": 8_000 if number < 3 else 128_000}
        row["resolved"] = row["arm"] == "depth-0" or number < 3
        row["input_tokens"], row["output_tokens"], row["calls"] = (100 if number < 3 else 1_000), 10, 2
    return results


def test_points() -> None:
    points = {(p.arm, p.size): p for p in by_size(sized())}
    assert list(points) == [("direct", 8_000), ("direct", 128_000), ("depth-0", 8_000), ("depth-0", 128_000)]
    assert [p.rate for p in points.values()] == [1, 0, 1, 1]
    assert {p.n for p in points.values()} == {9}
    assert points["direct", 128_000].tokens == 1_010
    assert points["direct", 128_000].low == 0 < points["direct", 128_000].high < 0.5


def test_what_is_not_known_is_not_zero() -> None:
    results = sized()
    results.rows[0]["output_tokens"] = None
    found = {p.arm: p for p in by_size(results) if p.size == 8_000}
    assert found[results.rows[0]["arm"]].tokens is None


def test_the_table() -> None:
    table = size_table(sized())
    assert [row[:4] for row in table.rows] == [
        ["8k", "direct", "9", "9"],
        ["8k", "depth-0", "9", "9"],
        ["128k", "direct", "9", "0"],
        ["128k", "depth-0", "9", "9"],
    ]
    assert "sub-calls included" in table.to_text()


def test_without_sizes_it_says_so() -> None:
    with pytest.raises(StudyError, match="no finished task of this study says how large its context was"):
        size_table(made_results(tasks=2))


def test_the_figure(tmp_path: Path) -> None:
    paths = save(size_figure(sized()), tmp_path / "by_size")
    assert [p.name for p in paths] == ["by_size.png", "by_size.svg"]
    svg = paths[1].read_text("utf-8")
    assert "128k" in svg or "<path" in svg
    assert paths[0].stat().st_size > 5_000
