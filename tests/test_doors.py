"""Tests look at the package through its public doors, so that a room can be written anew without its tests.

And they stay on this machine: the guard of conftest.py.
"""

from __future__ import annotations

import ast
import re
import socket
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CONTRIBUTING = TESTS.parent / "CONTRIBUTING.md"

#: Files that must look inside, by the reason.
INSIDE = {
    "any text or bytes, given to one reader": """
        dialects/test_any_text dialects/test_fences dialects/test_reader_table dialects/test_react_text
        dialects/test_tool_text meter/test_meter_attacked meter/test_meter_causes
        report/test_page report/notebook/test_live_view study/test_harness_tax tasks/test_written""",
    "arithmetic, over values that no run makes": """
        accounting/test_attribution conformance/test_compaction_laws models/test_measure
        repl/test_cells repl/test_context repl/test_context_frame study/study_arms study/test_comparison_agrees
        study/statistics/test_statistics_examples study/statistics/test_statistics_simulated
        tasks/long_context/again tasks/long_context/test_truths""",
    "damaged or hostile files, replies, frames, processes and answers": """
        agents/recursion/test_trees fuzz/test_boundary_fuzz models/test_odd_replies models/test_streams
        models/test_weights providers/test_provider_troubles repl/test_boundary repl/test_folders repl/test_records
        repl/test_transfer tasks/test_function_repair tasks/test_humaneval tasks/test_judge
        tasks/test_package_bugs tools/test_mcp_tools tools/test_refusals tools/test_watch traces/test_damaged
        traces/test_kept traces/test_received traces/test_redact workspace/test_run_tests""",
    "rules and facts of the machine": """
        cli/test_doctor models/conftest models/test_http repl/escapes repl/test_isolated repl/test_lifetime
        repl/test_readable repl/test_seccomp""",
    "a made clock, little patience, small limits, or one moment": """
        agents/recursion/test_cancelling agents/test_one_run meter/test_meter_forward study/test_study_limits
        tools/test_tool_threads""",
    "the user's own variables, the extras that messages name, and what is recorded": """
        repl/test_notebook_session tasks/test_frames test_install test_recorded_runs""",
}
MAY = {f"{name}.py" for names in INSIDE.values() for name in names.split()}
DOORS = set(
    re.findall(r"`(rlm_loop[\w.]*)`", CONTRIBUTING.read_text("utf-8").split("\n### Doors\n")[1].split("\n### ")[0])
)
FILES = sorted(str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py"))


def is_module(name: str) -> bool:
    place = TESTS.parent.joinpath(*name.split("."))
    door, _, last = name.rpartition(".")
    if not name.startswith("rlm_loop.") or not (place.is_dir() or place.with_suffix(".py").is_file()):
        return False
    return last not in getattr(import_module(door), "__all__", ())  # where a function has the name of its module


def inner_imports(name: str) -> set[str]:
    """Return the modules of the package that a file imports, except the doors."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((TESTS / name).read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [str(node.module), *(name for name in inside if is_module(name))]
        found |= {module for module in names if module.split(".")[0] == "rlm_loop"}
    return found - DOORS


def test_tests_import_from_doors() -> None:
    inner = {name: modules for name in FILES if (modules := inner_imports(name))}
    assert {name: modules for name, modules in inner.items() if name not in MAY} == {}, "CONTRIBUTING.md, Doors"
    assert MAY - set(inner) == set(), "these import from doors only, or are gone: take them out"


def test_doors_exist() -> None:
    for door in DOORS:
        assert door == "rlm_loop" or is_module(door), door


def test_nothing_leaves_this_machine() -> None:
    there, six, name = ("192.0.2.1", 80), ("2001:db8::1", 80), ("example.invalid", 443)  # nobody is there
    with socket.socket() as tcp, socket.socket(socket.AF_INET6) as tcp6, socket.socket(type=socket.SOCK_DGRAM) as udp:
        for leave in (
            lambda: tcp.connect(there),
            lambda: tcp.connect_ex(there),
            lambda: tcp6.connect(six),
            lambda: tcp6.connect_ex(six),
            lambda: udp.sendto(b"x", there),
            lambda: socket.getaddrinfo(*name),
            lambda: socket.create_connection(name),
        ):
            with pytest.raises(RuntimeError, match="stay on this machine"):
                leave()
