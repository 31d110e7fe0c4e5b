"""What batching changed: rows of the same arm, task and seed from eight or four slots and from one, into README.md.

python experiments/batching/finding.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.messages import Prompt, Reply
from rlm_loop.report import Table
from rlm_loop.report.tables.readme import write_between
from rlm_loop.study import Results, load_study
from rlm_loop.study.compare.pair_keys import is_resolved

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import episode_of

HERE = Path(__file__).resolve().parent
#: The studies of which a part was run again with one slot, into `results/one_slot`, and how many slots they had.
STUDIES = {"answer_contract": 8, "noise_floor": 8, "scaffold_length": 4}
Pair = tuple[tuple[Results, Mapping[str, Any]], tuple[Results, Mapping[str, Any]]]


def finding() -> str:
    """The table, as Markdown; a study whose part is not there yet is left out."""
    there = {name: slots for name, slots in STUDIES.items() if (folder(name) / "one_slot" / "study.json").is_file()}
    rows = [[name, f"{slots} and 1", *changed(across(name))] for name, slots in there.items()]
    rows += [[name, "1 and 1", *changed(pairs)] for name in there if (pairs := list(again(name)))]
    columns = ["study", "slots", "pairs", "other first reply", "as much cached: pairs", "other first reply"]
    columns += ["other answer", "ends otherwise"]
    notes = [
        "A pair: the same arm, task and seed with more slots and with one, or, with one slot both times, the same arm "
        "and task with two seeds, of which temperature 0 makes no use; both runs of a pair have the same first prompt. "
        "As much cached: the pairs of which it had as many tokens in the cache both times. Ends otherwise: resolved "
        "in one of the two."
    ]
    return Table("What the number of slots changed", columns, rows, notes, 2).to_markdown()


def folder(name: str) -> Path:
    return HERE.parent / name / "results"


def across(name: str) -> Iterator[Pair]:
    """Each run with one slot beside the same one of the study."""
    whole, alone = load_study(folder(name)), load_study(folder(name) / "one_slot")
    found = {episode_of(row): row for row in whole.rows}
    for row in alone.rows:
        yield (whole, found[episode_of(row)]), (alone, row)


def again(name: str) -> Iterator[Pair]:
    """The runs with one slot whose arm and task were run with two seeds."""
    alone = load_study(folder(name) / "one_slot")
    first, *others = sorted({row["seed"] for row in alone.rows})
    found = {episode_of(row): row for row in alone.rows}
    for (arm, task, seed), row in found.items():
        for other in others:
            if seed == first and (second := found.get((arm, task, other))):
                yield (alone, row), (alone, second)


def changed(pairs: Iterable[Pair]) -> list[str]:
    """How many pairs there are, and in how many of them something differs.  Raises `ValueError` where prompts do."""
    count = replies = alike = alike_replies = answers = ends = 0
    for (one, a), (other, b) in pairs:
        (asked, said), (asked_too, said_too) = _first(one, a), _first(other, b)
        if asked.messages != asked_too.messages:
            raise ValueError(f"{a['arm']} on {a['task']}: the two runs were asked different things")
        differs = said.text != said_too.text
        same_cache = said.usage.cache_read_tokens == said_too.usage.cache_read_tokens
        count, replies = count + 1, replies + differs
        alike, alike_replies = alike + same_cache, alike_replies + (differs and same_cache)
        answers += a["answer"] != b["answer"]
        ends += is_resolved(a) != is_resolved(b)
    return [str(n) for n in (count, replies, alike, alike_replies, answers, ends)]


def _first(results: Results, row: Mapping[str, Any]) -> tuple[Prompt, Reply]:
    _, prompt, reply, *_ = next(iter(results.trace(row).calls()))
    return prompt, reply


if __name__ == "__main__":
    text = finding().strip()
    write_between(HERE / "README.md", "finding", text)
    sys.stdout.write(text + "\n")
