"""Every recorded run of the repository, read once: its rows sum to the bill, it replays, and it holds no secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.container.containers import CONTAINERS, Container
from rlm_loop.accounting import Budget
from rlm_loop.agents import Agent
from rlm_loop.replay import ReplayError, ledger_of, replay
from rlm_loop.study import read_trace
from rlm_loop.study.store.archive import packed_traces
from rlm_loop.traces import Redactor, RunRecord, read

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
ARCHIVES = sorted(path.relative_to(EXPERIMENTS).as_posix() for path in EXPERIMENTS.rglob("traces.tar.xz"))

#: By archive: how many runs have a reply that the reader of today reads otherwise (`dialects.reader`).  Their first
#: difference is what that reply asks for; all others are as recorded.
READ_OTHERWISE = {
    "ablations/results/traces.tar.xz": 11,
    "answer_contract/results/traces.tar.xz": 55,
    "bug_fixing/results/traces.tar.xz": 4,
    "headline/results/traces.tar.xz": 73,
    "lean_vs_react/results/traces.tar.xz": 20,
    "mcp_as_code/results/traces.tar.xz": 1,
    "noise_floor/results/traces.tar.xz": 126,
    "referee_arms/results/traces.tar.xz": 21,
    "scaffold_length/results/traces.tar.xz": 11,
}
READ = "what the reply asks for"

#: Runs of agents that others wrote, recorded through the meter.
OF_OTHERS = {"referee_arms/results/peers/traces.tar.xz"}

#: Runs of an experiment's own class of agent, which replay does not import from a trace: each agent by its name.
BOXES: dict[str, Agent] = {name: Container(container=name, budget=Budget(steps=1)) for name in CONTAINERS}
OWN = {f"container/{folder}/traces.tar.xz": BOXES for folder in ("results", "results-0.5b")}


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES)
def test_rows_sum_runs_replay_and_nothing_looks_like_a_secret(archive: str) -> None:
    wrong, seen, calls = list[str](), set[str](), 0
    folder = (EXPERIMENTS / archive).parent
    for name in packed_traces(folder):
        record = read_trace(folder, name)
        calls += summed(name, record)
        wrong += differs(archive, name, record)
        seen.update(texts(list(record.events)))
    assert wrong == [READ] * READ_OTHERWISE.get(archive, 0)
    assert calls
    hide = Redactor()
    assert [text for text in seen if hide(text) != text] == []  # what models wrote stays as they wrote it


def summed(name: str, record: RunRecord) -> int:
    """The calls whose rows were held against the bill: they sum to it, and nothing is left."""
    held = 0
    for call in ledger_of(record).calls:
        if call.usage.input_tokens is None:  # cancelled before the reply: nobody knows
            assert call.usage_warning, name
            continue
        held += 1
        assert sum(row.tokens for row in call.rows) == call.usage.input_tokens, (name, call.call)
        assert (call.exact, call.counted) == (True, call.usage.input_tokens), (name, call.call)
        assert all(0 <= row.resent <= row.tokens for row in call.rows)
        assert sum(row.cached or 0 for row in call.rows) == (call.usage.cache_read_tokens or 0)
    return held


def differs(archive: str, name: str, record: RunRecord) -> list[str]:
    """What today's loop does otherwise, but for what a reply asks for: that is counted as `READ`."""
    if archive in OF_OTHERS:  # their loop is not ours to run again, and replay says so
        with pytest.raises(ReplayError, match="give agent="):
            replay(record)
        return []
    found = replay(record, agent=OWN[archive][record.start["agent"]] if archive in OWN else None)
    if found.difference is not None and found.difference.what == READ:
        return [READ]
    return [] if found.same and found.complete else [f"{name}: {found}"]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def test_the_known_differences_are_of_committed_traces_and_the_notebooks_can_be_replayed() -> None:
    assert {*READ_OTHERWISE} | {*OWN} | OF_OTHERS <= set(ARCHIVES)
    recorded = sorted((ROOT / "notebooks" / "recorded").iterdir())
    assert [path for path in recorded if not replay(read(path)).same] == []
