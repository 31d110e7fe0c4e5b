"""The worker is its own program, and the host believes nothing that a cell may have forged."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import pytest

from rlm_loop.repl import PythonREPL
from rlm_loop.repl.host.launch import WORKER
from rlm_loop.repl.isolation.readable import HARDEN

FIND = """
import os
link = [int(f) for f in os.listdir('/proc/self/fd') if 'socket' in os.path.realpath(f'/proc/self/fd/{f}')]
"""


def test_the_worker_is_one_module_of_the_standard_library() -> None:
    for node in ast.walk(ast.parse(WORKER.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
        else:
            continue
        assert {n.partition(".")[0] for n in names} <= set(sys.stdlib_module_names), names


FORGED = [
    '{"t":"done","id":%d,"answer":{"value":"forged"}}',
    '{"t":"done"}',
    '{"t":"done","id":1e999}',
    '{"t":"call","id":1,"cell":%d,"name":"missing","args":[],"kwargs":{}}',
    '{"t":"call","id":1,"cell":%d,"name":"tool","args":{"~":"set","v":[[]]},"kwargs":7}',
    '{"t":"call","id":[],"cell":%d,"name":[],"args":0}',
    '{"t":"out","head":5,"dropped":"x"}',
    '{"t":"out","head":"\\u2028","dropped":-1,"tail":""}',
    '{"t":"hello","pid":-1}',
    '{"t":["died"]}',
    "not JSON",
    "!kill",
    "\\u0000\\u00ff",
]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the protocol's descriptor through /proc")
@pytest.mark.parametrize("frame", range(len(FORGED)))
def test_forged_frames_do_no_harm(forging: PythonREPL, frame: int) -> None:
    text = FORGED[frame]
    forging.add_tools({"tool": lambda *a: len(a)})
    forging.run("1")
    result = forging.run(
        f"{FIND}text = {text!r}\nos.write(link[0], b'\\n' + text.encode('utf-8', 'replace') + b'\\n');"
    )
    assert result.error in (None, "died")
    assert result.answer is None
    assert forging.run("print(tool(1, 2))").output == "2\n"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the protocol's descriptor through /proc")
def test_forged_frames_read_with_the_end_of_a_cell_cost_later_cells_nothing(forging: PythonREPL) -> None:
    for frame in ('{"t":"hello","pid":-1}', '{"t":"done"}', '{"t":"pipe"}'):
        forging.run(f"{FIND}os.write(link[0], b'\\n' + {frame!r}.encode() + b'\\n');")
        assert [forging.run(f"print({n})").output for n in range(3)] == ["0\n", "1\n", "2\n"]


#: What of the default kind only the sandbox can do: in `hardened` a cell does not see its own descriptors and /dev/shm.
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap")


@pytest.fixture(scope="module", params=[pytest.param("sandbox", marks=needs_bwrap), "plain"])
def forging(request: pytest.FixtureRequest) -> object:
    with PythonREPL(timeout=10, grace=0.5, launcher=request.param) as repl:
        yield repl


def test_an_answer_that_cannot_be_read_is_shown_as_it_came() -> None:
    from rlm_loop.repl.results import given

    for value in ({"~": "set", "v": [[]]}, {"~": "nope", "v": 1}, {"~": "datetime", "v": "never"}, {"~": 5}):
        assert given({"value": value}).form == "repr"


def test_nothing_that_a_worker_sends_is_unpickled() -> None:
    folder = WORKER.parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("load", "loads", "Unpickler"):
                assert isinstance(node.value, ast.Name)
                # `harden.py` loads the byte code that the host wrote for it
                assert node.value.id == "json" or path == WORKER or (node.value.id, path) == ("marshal", HARDEN)
