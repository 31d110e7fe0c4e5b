"""The scripted session through other frameworks: its replies, what of a prompt is scaffold, the tables, the results."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiment_modules import EXPERIMENTS, modules

from rlm_loop.models import ScriptedModel

HERE = EXPERIMENTS / "peers"
MODULES = ("attribution", "build", "contenders", "driving", "overhead", "records", "run", "tables", "times")


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    with modules(HERE, *MODULES, "wire_session") as found:
        yield found


def test_every_contender_has_a_driver_and_pins(peers: Any) -> None:
    for one in peers.contenders.CONTENDERS:
        tree = ast.parse(one.driver.read_text("utf-8"))
        roots = {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        assert bool(roots & {"rlm_loop", "ours_lean"}) == one.ours  # the others know nothing of us
        if not one.ours:
            assert all("==" in package for package in one.packages)
            assert all("==" in line for line in one.pins.read_text("utf-8").split())


def test_a_drivers_surroundings_hold_no_key_of_the_user(peers: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-users-own")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-users-own")
    (one,) = peers.contenders.chosen("openai_agents")
    found = peers.driving.surroundings(one, tmp_path, "a-session")
    assert "the-users-own" not in found.values()
    assert (found["OPENAI_API_KEY"], found["OPENAI_AGENTS_DISABLE_TRACING"]) == ("a-session", "1")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ours_code", "ours_lean"])
def test_our_loops_through_the_meter(peers: Any, name: str, tmp_path: Path) -> None:
    (one,) = peers.contenders.chosen(name)
    row = peers.overhead.measured(one, 2, ScriptedModel([]), tmp_path)
    assert (peers.tables.whole(row), row["calls"], row["reported_input_tokens"]) == ("", 3, sum(row["billed"]))
    assert peers.tables.overhead(row).per_turn == 0  # nothing of ours is added in a turn


def test_the_committed_session_is_whole(peers: Any) -> None:
    rows = peers.records.rows_of(HERE / "results" / "overhead.jsonl")
    assert [row["peer"] for row in rows] == [one.name for one in peers.contenders.CONTENDERS]
    for row in rows:
        sums = [sum(call) for call in zip(*row["tokens"].values(), strict=True)]
        assert (peers.tables.whole(row), sums) == ("", row["billed"]), row["peer"]
    assert peers.tables.overhead_table(rows) in (HERE / "README.md").read_text("utf-8")


@pytest.mark.parametrize("file", ["times", "tasks"])
def test_other_committed_results_are_in_the_tables(peers: Any, file: str) -> None:
    rows = peers.records.rows_of(HERE / "results" / f"{file}.jsonl")
    if rows:
        table = getattr(peers.tables, f"{file}_table")(rows)
        assert table in (HERE / "tables.md").read_text("utf-8")
