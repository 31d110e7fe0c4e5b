"""The card of a study's dataset: what was run, what it came to, what a field of a row is.

Its text is `dataset_card.md`, with the fields that a reader of rows asks about first; the docstring of
`study.store.rows.make_row` has them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from string import Template

from rlm_loop.study.results import Results
from rlm_loop.traces.versions import __version__


def dataset_card(results: Results, *, sessions: int) -> str:
    """The text of `README.md`: the header that the Hub reads, then prose, figures and fields."""
    about, name = results.provenance, results.name or "A study of agent loops"
    text = (files("rlm_loop.formats.traces") / "dataset_card.md").read_text("utf-8")
    return Template(text).substitute(
        pretty_name=json.dumps(name, ensure_ascii=False),
        name=name,
        size=_size(len(results)),
        episodes=len(results),
        sessions=sessions,
        version=__version__,
        model=about["model"],
        seeds=", ".join(map(str, about["seeds"])),
        date=about["date"] or "not known",
        arms="\n".join(_arms(results)),
    )


def _arms(results: Results) -> Iterator[str]:
    for arm in results.summary():
        name = f"{arm.arm}, {arm.model}" if len(results.models) > 1 else arm.arm
        cells = [name, arm.n, f"{arm.resolved} of {arm.judged}", _mean(arm.input_tokens), _mean(arm.output_tokens)]
        yield f"| {' | '.join(map(str, cells))} |"


def _mean(tokens: float | None) -> str:
    return "not known" if tokens is None else f"{tokens:,.0f}"


def _size(rows: int) -> str:
    """One of the Hub's categories."""
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
    return next((name for most, name in bounds if rows < most), "1M<n<10M")
