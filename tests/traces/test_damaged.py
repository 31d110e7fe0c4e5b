"""One part of a trace's event taken out or made something else: a reader gives what it can, or says what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.accounting import tree_of
from rlm_loop.agents import outcome_of
from rlm_loop.formats import conversation_of
from rlm_loop.models import ScriptedModel
from rlm_loop.replay.recorded import Recorded, ReplayError
from rlm_loop.traces import RunRecord, TraceError, read

REPLIES = ["```python\nprint(llm_query('hi'))\n```", "there", "```python\n1/0\n```", "```python\nfinal_answer = 7\n```"]
READERS: list[Callable[[RunRecord], object]] = [outcome_of, Recorded, conversation_of, tree_of]


def places(value: Any, levels: int = 5) -> Iterator[tuple[Any, ...]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items if levels else ():
        yield (key,)
        yield from ((key, *rest) for rest in places(part, levels - 1))


def changed(event: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    new = copy.deepcopy(event)
    around: Any = new
    for key in place[:-1]:
        around = around[key]
    if value == "gone":
        del around[place[-1]]
    else:
        around[place[-1]] = value
    return new


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("whole") / "t.jsonl"
    ToolLoopAgent(repl="plain", model=ScriptedModel(REPLIES)).run("What?", context="abc", trace=file)
    return file.read_text().splitlines()


@pytest.mark.parametrize(
    ("value", "each"),  # every part is taken out, and is made one of three other things
    [
        pytest.param("gone", slice(None), marks=pytest.mark.slow),
        ({}, slice(0, None, 3)),
        (3, slice(1, None, 3)),
        (10**400, slice(2, None, 3)),
    ],
    ids=["gone", "an object", "a number", "a huge number"],
)
def test_a_part_that_is_not_what_it_should_be(lines: list[str], value: Any, each: slice, tmp_path: Path) -> None:
    file, wrong = tmp_path / "t.jsonl", list[Any]()
    refused = 0
    for number, line in enumerate(lines):
        event = json.loads(line)
        for place in list(places(event))[each]:
            new = json.dumps(changed(event, place, value))
            file.write_text("\n".join([*lines[:number], new, *lines[number + 1 :], ""]))
            try:
                record = read(file)
            except TraceError:
                refused += 1
                continue
            for reader in READERS:
                try:
                    reader(record)
                except (TraceError, ReplayError):
                    refused += 1
                except Exception as error:
                    wrong.append((reader, event["event"], place, repr(error)[:100]))
    assert wrong == []
    assert refused > 10
