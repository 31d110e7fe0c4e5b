"""The experiment on MCP tools as code: its session runs with any server, its table is of the committed rows."""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rlm_loop.models import ScriptedModel
from rlm_loop.tasks.attempt import Attempt

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "mcp_as_code"
OWN = ("folder", "questions", "scripted", "servers", "session", "study")
ANSWERS = {
    "orders": 16,
    "busiest": "orders-2026-02.csv",
    "bergen": 3,
    "revenue": 680,
    "without": "Dina",
    "texts": 8,
    "longest": "cleo.txt",
    "late": 3,
    "more": 4,
    "bytes": 141,
    "both": 3,
    "price": "chair",
    "most-sold": "lamp",
    "ada": 6,
}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """`scripted.py`, whose neighbours have names of their folder only."""
    before = {name: sys.modules.pop(name, None) for name in OWN}
    monkeypatch.setattr(sys, "path", [str(HERE), str(ROOT), *sys.path])
    spec = importlib.util.spec_from_file_location("scripted", HERE / "scripted.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def test_the_session_runs_with_a_server_and_each_loop_pays_for_its_tools(script: ModuleType) -> None:
    pytest.importorskip("mcp", reason='needs mcp: pip install -e ".[mcp]"')
    from rlm_loop.tools import mcp_tools

    adds = [("add_numbers", {"a": n, "b": 1}) for n in range(10)]
    cell = "final_answer = sum(int(add_numbers(a=n, b=1)) for n in range(1, 10))"
    session = script.Session("What is the sum of 2 to 10?", adds, cell, 54)
    with mcp_tools([sys.executable, str(ROOT / "tests" / "tools" / "mcp_server.py")]) as tools:
        found = script.rows(session, {1: tools[:1], 5: tools[:5]}, ScriptedModel([]).measure)
    cost = {(row["arm"], row["tools"]): row for row in found_costs(script, found)}
    requests = {"lean": 11, "lean-parallel": 3, "lean-text": 11, "code": 11, "code-one-cell": 2}
    assert {arm: cost[arm, 5]["requests"] for arm in script.ARMS} == requests
    for arm in script.ARMS:
        one, five = cost[arm, 1], cost[arm, 5]
        assert 0 < one["a_call"] < five["a_call"]
        assert five["input"] - one["input"] == five["in_all"] - one["in_all"]  # tools, and nothing else
    assert cost["lean", 5]["a_call"] == cost["lean-parallel", 5]["a_call"]
    wrong = script.Session("What?", [("add_numbers", {"a": "x", "b": 1}), *adds[1:]], cell, 54)
    with pytest.raises(RuntimeError, match="lean with 1 tools did not go as written"):
        script.rows(wrong, {1: tools[:1]}, ScriptedModel([]).measure)


def found_costs(script: ModuleType, rows: list[dict[str, object]]) -> list[dict[str, int]]:
    pandas = pytest.importorskip("pandas")
    return script.costs(pandas.DataFrame(rows))


def test_the_readme_has_the_table_of_the_committed_rows(script: ModuleType) -> None:
    pytest.importorskip("pandas")
    assert script.table(script.recorded()).to_markdown() in (HERE / "README.md").read_text("utf-8")


def test_the_number_of_tools_changes_nothing_but_what_is_told_of_tools() -> None:
    with (HERE / "results" / "scripted.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    work: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        if row["tools"] != "0" and row["cause"] in ("assistant", "tool_result", "repl_output", "task"):
            sizes = work.setdefault((row["arm"], row["cause"]), {})
            sizes.setdefault(row["tools"], []).append(row["tokens"])
    assert work
    for sizes in work.values():
        assert sizes["10"] == sizes["40"] == sizes["120"]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_truths_are_those_of_the_folder(script: ModuleType, name: str) -> None:
    from questions import suite  # pyright: ignore[reportMissingImports]  # beside the script

    (task,) = (task for task in suite() if task.id == f"shop-{name}")
    assert task.expected == ANSWERS[name]
    assert task.judge(Attempt(answer=str(ANSWERS[name]), answered=True)).resolved


def test_a_server_has_a_folder_of_its_own_for_as_long_as_it_runs(tmp_path: Path) -> None:
    lines = "import os; print(os.getcwd()); print(open('customers.csv').readline()); open('new', 'w')"
    command = [sys.executable, str(HERE / "serve.py"), sys.executable, "-c", lines]
    folder, header, *_ = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert header == "customer,city"
    assert not Path(folder).exists()
