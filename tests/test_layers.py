"""A module imports only from its own layer or a lower one, lazy imports included, and never in a circle."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rlm_loop

PACKAGE = Path(rlm_loop.__file__).parent

#: The rooms from the bottom up, and the modules that lie beside them (see CONTRIBUTING.md): a room imports from
#: those before it only.
ROOMS = [
    "messages", "actions", "errors", "plugins", "versions", "traces", "accounting", "outcome", "models",
    "repl", "tools", "workspace", "dialects", "tasks", "agents", "study", "replay", "meter", "formats", "report", "cli",
]  # fmt: skip
Import = tuple[str, str]  # who, and what it imports


def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def layer(module: str) -> int:
    """The package itself re-exports from anywhere, and nothing imports names from it."""
    _, *parts = module.split(".")
    assert not parts or parts[0] in ROOMS, f"{module} is in no room: see ROOMS and CONTRIBUTING.md"
    return ROOMS.index(parts[0]) if parts else len(ROOMS)


def imports_of(source: str, text: str, known: set[str], package: bool) -> Iterator[Import]:
    """Every import of this package in a module, wherever it stands, as the module that is really meant."""
    gc.disable()  # Python 3.11 raises a SystemError where a collection runs Python code while it builds the tree
    try:
        tree = ast.parse(text)
    finally:
        gc.enable()
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = source.split(".") if package else source.split(".")[:-1]
            prefix = base[: len(base) - node.level + 1] if node.level else []
            home = ".".join([*prefix, *([node.module] if node.module else [])])
            targets = [f"{home}.{alias.name}" if f"{home}.{alias.name}" in known else home for alias in node.names]
        yield from ((source, target) for target in targets if target.split(".")[0] == "rlm_loop")


def upward(imports: Iterable[Import]) -> list[Import]:
    return [(source, target) for source, target in imports if layer(target) > layer(source)]


def test_every_module_is_in_a_room_and_imports_go_downward_only_and_never_in_a_circle() -> None:
    known, edges = modules(), dict[str, set[str]]()
    for name, path in known.items():
        layer(name)
        found = list(imports_of(name, path.read_text("utf-8"), set(known), path.name == "__init__.py"))
        assert upward(found) == []
        edges[name] = {target for _, target in found} - {name}
    TopologicalSorter(edges).prepare()  # raises where there is a circle, and names it


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from rlm_loop.messages import Usage", 0),
        ("from .base import Model", 0),
        ("def f():\n    from rlm_loop.agents.run import run", 1),
        ("from ..study import grid\nimport rlm_loop.cli.main", 2),
        ("from rlm_loop import agents, Budget", 2),
    ],
)
def test_the_check_sees_what_it_should(text: str, wrong: int) -> None:
    assert len(upward(imports_of("rlm_loop.models.local", text, set(modules()), package=False))) == wrong


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
