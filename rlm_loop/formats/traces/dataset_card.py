"""The card of a study's dataset: what was run, what it came to, what a field of a row is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rlm_loop.study.results import Results
from rlm_loop.traces.versions import __version__

#: Fields that a reader of rows asks about first; the docstring of `study.store.rows.make_row` has them all.
FIELDS = {
    "arm": "what was varied: the loop, its settings",
    "model": "as the study names it",
    "suite": "where the task is from",
    "task": "the task; arms are paired by model, suite, task and seed",
    "seed": "the repetition",
    "resolved": "whether the task was solved; null where nothing judged it",
    "input_tokens": "prompt tokens of all calls, those from a cache included",
    "output_tokens": "generated tokens of all calls",
    "by_cause": "input tokens by what put them there; they sum to input_tokens",
    "stop": "why the run ended",
    "cost": "US dollars; null where no price is known",
    "error": "set for an episode that crashed",
}


def dataset_card(results: Results, *, sessions: int) -> str:
    """The text of `README.md`: the header that the Hub reads, then prose, figures and fields."""
    about = results.provenance
    head: dict[str, Any] = {
        "pretty_name": results.name or "A study of agent loops",
        "tags": ["agent-traces", "rlm-loop", "token-attribution"],
        "size_categories": [_size(len(results))],
        "configs": [
            {"config_name": "results", "data_files": "results.jsonl", "default": True},
            {"config_name": "sessions", "data_files": "sessions/**/*.jsonl"},
        ],
    }
    lines = [
        "---",
        *(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()),
        "---",
        "",
        f"# {head['pretty_name']}",
        "",
        f"{len(results)} episodes of small agent loops, run with rlm_loop and exported by version {__version__}.",
        f"Model: {about['model']}. Seeds: {', '.join(map(str, about['seeds']))}. Run: {about['date'] or 'not known'}.",
        "",
        "- `results.jsonl` has a row an episode: what it came to and what it cost.",
        f"- `sessions/` has {sessions} conversations, one a file, for the Hub's trace viewer.",
        "",
        "Texts were redacted of known shapes of keys when they were recorded. Look through them before you publish.",
        "",
        "## What the arms came to",
        "",
        "| arm | episodes | resolved | input tokens | output tokens |",
        "|---|---|---|---|---|",
        *_arms(results),
        "",
        "Tokens are means over the episodes that ran to their end. Arms are counted on the pairs that all of them ran.",
        "",
        "## Fields of a row",
        "",
        *(f"- `{name}`: {text}" for name, text in FIELDS.items()),
    ]
    return "\n".join(lines) + "\n"


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
