"""The figure of a run's coverage."""

from __future__ import annotations

from pathlib import Path

from made_traces import Told

from rlm_loop.report import coverage_figure, save
from rlm_loop.study.coverage import Coverage, coverage_of

TEXT = "".join(f"record {i:04d} holds the value {i * 7919 % 10007:05d} for its owner\n" for i in range(1000))


def a_coverage() -> Coverage:
    told = Told(context=TEXT)
    told.turn("print(context[:4800])", TEXT[:4800])
    told.batch([TEXT[i : i + 4800] for i in (0, 4800, 24000)], ["a"] * 3)
    told.turn("x")
    return coverage_of(TEXT, told.end())


def test_a_strip_for_each_depth() -> None:
    made = coverage_figure(a_coverage(), needles=[(100, 160), (40_000, 40_060)])
    [axes] = made.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["depth 0  10.0%", "depth 1  30.0%"]
    assert len(axes.images) == 2
    assert len(axes.lines) == 2
    assert axes.get_title(loc="left").endswith("30.0%")
    first = axes.images[0].get_array()
    assert (float(first[0, 0]), float(first[0, -1])) == (1.0, 0.0)


def test_an_empty_context_has_a_figure_too() -> None:
    assert coverage_figure(coverage_of("", Told(context="").end())).axes


def test_the_same_coverage_gives_the_same_files(tmp_path: Path) -> None:
    first = save(coverage_figure(a_coverage()), tmp_path / "a")
    second = save(coverage_figure(a_coverage()), tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
