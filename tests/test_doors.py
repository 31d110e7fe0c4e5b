"""Tests look at the package through its public doors, so that a room can be written anew without its tests."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parent
ARCHITECTURE = TESTS.parent / "docs" / "architecture.md"

#: Files that must look inside, with the reason.
INSIDE = {
    "accounting/test_attribution.py": "arithmetic of shares, over any counts",
    "agents/recursion/test_cancelling.py": "a made clock, and little patience",
    "agents/test_one_run.py": "the six parts of an environment, streamed text, and little patience",
    "agents/test_stopping.py": "pure arithmetic: which turns end a run",
    "cli/test_doctor.py": "the facts of the machine that the command prints",
    "agents/recursion/test_trees.py": "calls whose reply never came",
    "conformance/test_compaction_laws.py": "laws over histories that no run makes",
    "dialects/test_any_text.py": "any text, given to each reader",
    "dialects/test_fences.py": "blocks of code in replies",
    "dialects/test_reader_table.py": "code out of every carrier",
    "dialects/test_react_text.py": "steps of ReAct replies",
    "dialects/test_tool_text.py": "calls written as text",
    "fuzz/test_boundary_fuzz.py": "the decoders of frames, replies, displays and rows, which no door shows",
    "meter/test_meter_attacked.py": "bodies of any bytes",
    "meter/test_meter_blocks.py": "pieces of any text, which together are that text",
    "meter/test_meter_causes.py": "causes of any message, which together are its text",
    "meter/test_meter_forward.py": "limits made small",
    "models/conftest.py": "which weights are on this machine",
    "models/test_http.py": "connections, proxies and certificates",
    "models/test_measure.py": "arithmetic: tokens of parts that sum to the whole",
    "models/test_odd_replies.py": "damaged replies and headers, and bombs",
    "models/test_streams.py": "streams that are damaged or cut anywhere",
    "models/test_weights.py": "archives of strangers, checked before their use",
    "providers/test_provider_troubles.py": "what each provider says when it refuses a parameter",
    "repl/escapes.py": "whether any user may read the package",
    "repl/test_boundary.py": "frames that a hostile child sends, and its pipes",
    "repl/test_cells.py": "arithmetic of clipped texts",
    "repl/test_context.py": "the bound of the tokens about a context",
    "repl/test_context_frame.py": "the bound of the tokens about a frame",
    "repl/test_folders.py": "folders that a hostile cell filled",
    "repl/test_isolated.py": "rules of the kernel of Linux, and what a cell may inherit",
    "repl/test_lifetime.py": "a host killed in every state",
    "repl/test_notebook_session.py": "the user's own variables, given back and never left changed",
    "repl/test_readable.py": "paths that a cell may read, and its environment",
    "repl/test_records.py": "a session killed anywhere",
    "repl/test_seccomp.py": "the filter of system calls",
    "repl/test_transfer.py": "values too large for a frame",
    "report/notebook/test_live_writing.py": "what a half-written reply shows of a key",
    "report/test_page.py": "escaping of any text, and sums of tokens",
    "study/statistics/test_statistics_examples.py": "statistics against published examples",
    "study/statistics/test_statistics_simulated.py": "statistics against simulation",
    "study/study_arms.py": "arms that write real traces without a loop",
    "study/test_comparison_agrees.py": "each p of a table against its interval",
    "study/test_harness_tax.py": "requests of four APIs, read",
    "study/test_noise_floor.py": "pairs counted from made fairness checks",
    "study/test_study_limits.py": "waits for providers on a made clock",
    "tasks/long_context/again.py": "the truths once more, by another way",
    "tasks/long_context/test_suite.py": "the exact text that questions are hidden in",
    "tasks/long_context/test_truths.py": "arithmetic: lines woven into texts of exact size",
    "tasks/test_frames.py": "what is recorded, against the frames of it",
    "tasks/test_function_repair.py": "right sources, and answers less isolated than their cells",
    "tasks/test_humaneval.py": "recorded bugs, put into each published problem",
    "tasks/test_judge.py": "answers that are hostile to their judge",
    "tasks/test_machine_faults.py": "faults of the machine, below each judge",
    "tasks/test_package_bugs.py": "damaged and forged packages",
    "tasks/test_written.py": "any text that a model writes",
    "test_install.py": "the extras that messages name",
    "test_recorded_runs.py": "traces as a study packs them",
    "tools/test_mcp_tools.py": "names and schemas that foreign servers give",
    "tools/test_refusals.py": "files opened after the check, against links",
    "tools/test_tool_threads.py": "a value that comes in the very moment in which its caller gives up",
    "tools/test_watch.py": "processes that hang, flood or escape",
    "traces/test_damaged.py": "damaged events, given to each reader",
    "traces/test_kept.py": "a log folder that is full, or cannot be written",
    "traces/test_received.py": "damaged and hostile files, bounded before they are unpacked",
    "traces/test_redact.py": "secrets, in every place that could keep or show them",
    "workspace/test_guard.py": "what a hostile patch may not change",
    "workspace/test_reports.py": "what a hostile process of tests tells",
}
DOORS = set(
    re.findall(r"`(rlm_loop[\w.]*)`", ARCHITECTURE.read_text("utf-8").split("\n## Doors\n")[1].split("\n## ")[0])
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
    assert {name: modules for name, modules in inner.items() if name not in INSIDE} == {}, "docs/architecture.md, Doors"
    assert set(INSIDE) - set(inner) == set(), "these import from doors only, or are gone: take them out"


def test_doors_exist() -> None:
    for door in DOORS:
        assert door == "rlm_loop" or is_module(door), door
