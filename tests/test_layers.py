"""A module imports only from its own layer or a lower one, lazy imports included, and never in a circle."""

from __future__ import annotations

import ast
import functools
import gc
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rlm_loop

PACKAGE = Path(rlm_loop.__file__).parent

#: The rooms from the bottom up, and the modules that lie beside them (see docs/architecture.md): a room imports from
#: those before it only.
ROOMS = [
    "messages",
    "actions",
    "errors",
    "plugins",
    "short_repr",
    "versions",
    "traces",
    "accounting",
    "outcome",
    "models",
    "repl",
    "tools",
    "workspace",
    "dialects",
    "tasks",
    "agents",
    "study",
    "replay",
    "meter",
    "formats",
    "report",
    "cli",
]
LAYER_OF = {name: layer for layer, name in enumerate(ROOMS)}
LOOSE = {"messages", "actions", "errors", "plugins", "outcome", "short_repr", "versions"}
FACADE = len(ROOMS)  # rlm_loop/__init__.py: re-exports from anywhere, and nothing imports names from it


@dataclass(frozen=True)
class Import:
    source: str
    target: str
    line: int
    typing_only: bool


def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def layer(module: str) -> int:
    parts = module.split(".")
    if len(parts) == 1:
        return FACADE
    assert parts[1] in LAYER_OF, f"{module} is in no room: see ROOMS and docs/architecture.md"
    return LAYER_OF[parts[1]]


def imports_of(source: str, text: str, known: set[str], package: bool) -> Iterator[Import]:
    """Every import of this package in a module, wherever it stands, as the module that is really meant."""
    typing_only: set[ast.AST] = set()
    gc.disable()  # Python 3.11 raises a SystemError where a collection runs Python code while it builds the tree
    try:
        tree = ast.parse(text)
    finally:
        gc.enable()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing_only.update(inner for statement in node.body for inner in ast.walk(statement))
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = source.split(".") if package else source.split(".")[:-1]
            prefix = base[: len(base) - node.level + 1] if node.level else []
            home = ".".join([*prefix, *([node.module] if node.module else [])])
            targets = [f"{home}.{alias.name}" if f"{home}.{alias.name}" in known else home for alias in node.names]
        for target in targets:
            if target.split(".")[0] == "rlm_loop":
                yield Import(source, target, node.lineno, node in typing_only)


@functools.cache
def all_imports() -> tuple[Import, ...]:
    known = modules()
    return tuple(
        found
        for name, path in known.items()
        for found in imports_of(name, path.read_text(encoding="utf-8"), set(known), path.name == "__init__.py")
    )


def upward(imports: Sequence[Import]) -> list[str]:
    return [
        f"{i.source}:{i.line} imports {i.target} (layer {layer(i.source)} -> {layer(i.target)})"
        for i in imports
        if layer(i.target) > layer(i.source)
    ]


def circle(imports: Sequence[Import]) -> list[str] | None:
    """A circle of imports, if there is one, whether they are for type checkers or not."""
    edges: dict[str, set[str]] = {}
    for i in imports:
        if i.source != i.target:
            edges.setdefault(i.source, set()).add(i.target)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_every_module_is_in_a_room() -> None:
    for name in modules():
        layer(name)


def test_only_the_shared_values_lie_outside_rooms() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"} == LOOSE


def test_imports_go_downward_only() -> None:
    assert upward(all_imports()) == []


def test_there_are_no_circles() -> None:
    assert circle(all_imports()) is None


def test_no_package_is_called_core_utils_or_common() -> None:
    for name in modules():
        assert not {"core", "utils", "common"} & set(name.split("."))


@pytest.mark.parametrize(
    ("source", "text", "wrong"),
    [
        ("rlm_loop.accounting.ledger", "from rlm_loop.messages import Usage", 0),
        ("rlm_loop.accounting.ledger", "def f():\n    from rlm_loop.agents.run import run", 1),
        ("rlm_loop.accounting.ledger", "import rlm_loop.cli.main", 1),
        ("rlm_loop.accounting.ledger", "from rlm_loop import agents", 1),
        ("rlm_loop.accounting.ledger", "from rlm_loop import Budget", 1),
        ("rlm_loop.accounting.ledger", "from rlm_loop import __version__", 1),
        ("rlm_loop.models.local", "from ..study import grid", 1),
        ("rlm_loop.models.local", "from .base import Model", 0),
        ("rlm_loop.models.local", "if TYPE_CHECKING:\n    from rlm_loop.agents import ToolLoopAgent", 1),
    ],
)
def test_the_check_sees_what_it_should(source: str, text: str, wrong: int) -> None:
    known = {*modules(), "rlm_loop.agents", "rlm_loop.agents.loop", "rlm_loop.study.plan.grid"}
    assert len(upward(list(imports_of(source, text, known, package=False)))) == wrong


def test_a_circle_is_found() -> None:
    there, back = Import("rlm_loop.a", "rlm_loop.b", 1, False), Import("rlm_loop.b", "rlm_loop.a", 1, False)
    assert circle([there, back]) == ["rlm_loop.a", "rlm_loop.b", "rlm_loop.a"]
    assert circle([there, Import("rlm_loop.b", "rlm_loop.a", 1, True)]) == ["rlm_loop.a", "rlm_loop.b", "rlm_loop.a"]
    assert circle([there]) is None


HEAVY = "pandas matplotlib numpy jinja2 litellm xllamacpp pydantic httpx urllib3 certifi typer rich tqdm opentelemetry"


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import rlm_loop", f"{HEAVY} asyncio socket ssl http urllib.request sqlite3 multiprocessing subprocess"),
        ("from rlm_loop import *", HEAVY),
    ],
)
def test_importing_loads_nothing_heavy(statement: str, unwanted: str) -> None:
    code = f"import sys; before = set(sys.modules)\n{statement}\nprint(*set(sys.modules) - before)"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "rlm_loop" in done.stdout.split()
    assert set(done.stdout.split()) & set(unwanted.split()) == set()


def test_public_names() -> None:
    for name in rlm_loop.__all__:
        assert name in dir(rlm_loop)
        assert getattr(rlm_loop, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Budgett'"):
        _ = rlm_loop.Budgett  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ImportError):
        exec("from rlm_loop import nothing_of_the_kind")
