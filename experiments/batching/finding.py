"""What batching changed: rows of the same arm, task and seed from eight or four slots and from one, into README.md.

python experiments/batching/finding.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.messages import Prompt, Reply
from rlm_loop.report import Table
from rlm_loop.report.tables.readme import write_between
from rlm_loop.study import Results, load_study
from rlm_loop.study.compare.pair_keys import is_resolved

HERE = Path(__file__).resolve().parent
#: The studies of which a part was run again with one slot, into `results/one_slot`, and how many slots they had.
STUDIES = {"answer_contract": 8, "noise_floor": 8, "scaffold_length": 4}
Pair = tuple[tuple[Results, Mapping[str, Any]], tuple[Results, Mapping[str, Any]]]


def finding() -> str:
    """The table, as Markdown; a study whose part is not there yet is left out."""
    there = {name: slots for name, slots in STUDIES.items() if (folder(name) / "one_slot" / "study.json").is_file()}
    rows = [[name, f"{slots} and 1", *changed(across(name))] for name, slots in there.items()]
    rows += [[name, "1 and 1", *changed(pairs)] for name in there if (pairs := list(again(name)))]
    columns = ["study", "slots", "pairs", "same first prompt", "other first reply", "other answer", "ends otherwise"]
    notes = [
        "A pair: the same arm, task and seed with more slots and with one, or, with one slot both times, the same arm "
        "and task with two seeds, of which temperature 0 makes no use. First replies are compared where the first "
        "prompts are the same; ends otherwise: resolved in one of the two."
    ]
    return Table("What the number of slots changed", columns, rows, notes, 2).to_markdown()


def folder(name: str) -> Path:
    return HERE.parent / name / "results"


def across(name: str) -> Iterator[Pair]:
    """Each run with one slot beside the same one of the study."""
    whole, alone = load_study(folder(name)), load_study(folder(name) / "one_slot")
    found = {_key(row): row for row in whole.rows}
    for row in alone.rows:
        yield (whole, found[_key(row)]), (alone, row)


def again(name: str) -> Iterator[Pair]:
    """The runs with one slot whose arm and task were run with two seeds."""
    alone = load_study(folder(name) / "one_slot")
    first, *others = sorted({row["seed"] for row in alone.rows})
    found = {_key(row): row for row in alone.rows}
    for (arm, suite, task, seed), row in found.items():
        for other in others:
            if seed == first and (second := found.get((arm, suite, task, other))):
                yield (alone, row), (alone, second)


def changed(pairs: Iterator[Pair] | list[Pair]) -> list[str]:
    """How many pairs there are, and in how many of them something differs."""
    count = prompts = replies = answers = ends = 0
    for (one, a), (other, b) in pairs:
        (asked, said), (asked_too, said_too) = _first(one, a), _first(other, b)
        same = asked.messages == asked_too.messages
        count, prompts = count + 1, prompts + same
        replies += same and (said.text, said.tool_calls) != (said_too.text, said_too.tool_calls)
        answers += a["answer"] != b["answer"]
        ends += is_resolved(a) != is_resolved(b)
    return [str(n) for n in (count, prompts, replies, answers, ends)]


def _first(results: Results, row: Mapping[str, Any]) -> tuple[Prompt, Reply]:
    _, prompt, reply, *_ = next(iter(results.trace(row).calls()))
    return prompt, reply


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return row["arm"], row["suite"], row["task"], row["seed"]


if __name__ == "__main__":
    text = finding().strip()
    write_between(HERE / "README.md", "finding", text)
    sys.stdout.write(text + "\n")
