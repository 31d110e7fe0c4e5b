"""What a hostile worker sends: nothing in it leads to an import, a class of its choice, or memory beyond its own size.

Semantics 61 and 62.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_protocol import FIND

from rlm_loop.repl import PythonREPL
from rlm_loop.repl.host.frames import LONGEST, MOST, FrameReader, OutOfBounds, check, decode, decode_within
from rlm_loop.repl.host.launch import WORKER
from rlm_loop.repl.results import given as given_answer
from rlm_loop.repl.worker import encode, values_in

through_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the protocol's socket in /proc")


#: What of the default kind only the sandbox can do: in `hardened` a cell does not see its own descriptors and /dev/shm.
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap")


@pytest.fixture(params=["plain", pytest.param("auto", marks=needs_bwrap)])
def repl(request: pytest.FixtureRequest) -> Iterator[PythonREPL]:
    with PythonREPL(launcher=request.param, rebuild=False, timeout=5, grace=0.5) as session:
        yield session


# -- values

REFUSED: list[Any] = [
    {"~": "nope", "v": 1},
    {"~": ["set"], "v": []},
    {"~": "set", "v": [[]]},
    {"~": "dict", "v": [[1]]},
    {"~": "tuple", "v": 5},
    {"~": "datetime", "v": "never"},
    {"~": "int", "v": "f" * 1_000_001},
    {"~": "decimal", "v": "1"},
    {"~": "set", "v": [(2**61 - 1) * n for n in range(5000)]},
    {"~": "dict", "v": [[(2**61 - 1) * n, 0] for n in range(5000)]},
    {"~": "set", "v": [*range(50_000), *((2**61 - 1) * n for n in range(40_000))]},  # more than half are ordinary
    {"~": "set", "v": [(2**61 - 1) * n for n in range(100)]},
    {"~": "set", "v": [{"~": "tuple", "v": [(2**61 - 1) * n]} for n in range(100)]},
]


@pytest.mark.parametrize("form", REFUSED, ids=lambda form: str(form)[:40])
def test_a_forged_value_is_refused_and_shown_as_it_came(form: Any) -> None:
    with pytest.raises(ValueError):
        decode(form)
    assert given_answer({"value": form}).form == "repr"


def test_a_large_value_is_decoded_off_the_main_thread_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def slow(value: Any) -> Any:
        threads.append(threading.current_thread())
        time.sleep(1)
        return value

    monkeypatch.setattr("rlm_loop.repl.host.frames.decode", slow)
    began = time.perf_counter()
    with pytest.raises(ValueError, match="too long"):
        decode_within([1], 2 << 20, 0.1)
    assert time.perf_counter() - began < 0.9
    assert threads != [threading.current_thread()]


def test_the_decoder_imports_nothing() -> None:
    import ast

    import rlm_loop.repl.host.frames as module

    trees = [ast.parse(Path(module.__file__).read_text("utf-8"))]
    lines = WORKER.read_text("utf-8")
    begin = lines.index("def decode(")
    trees.append(ast.parse(lines[begin : lines.index("def safe_repr(")]))
    inner = [n for tree in trees for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)]
    assert not [n for n in inner if isinstance(n, ast.Import | ast.ImportFrom)]
    names = [n.id for n in [*inner, *ast.walk(trees[1])] if isinstance(n, ast.Name)]
    assert not {"__import__", "eval", "exec", "getattr"} & {*names}


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers() | st.text(), max_size=4)
    ),
    max_leaves=20,
)


@given(_plain)
def test_what_an_honest_worker_sends_comes_out_equal(value: Any) -> None:
    line = json.dumps(encode(value)).encode()
    check(line)
    assert decode(json.loads(line)) == value


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda i: (
            st.lists(i)
            | st.dictionaries(
                st.sampled_from(["~", "v", "a", "series", "data"]),
                i | st.sampled_from(["set", "dict", "table", "range", "answer"]),
            )
        ),
        max_leaves=20,
    )
)
@settings(max_examples=300)
def test_any_json_is_a_value_or_refused(form: Any) -> None:
    with contextlib.suppress(ValueError):
        decode(form)


# -- frames


@given(_plain)
def test_values_and_levels_are_counted_before_anything_is_built(value: Any) -> None:
    def levels(form: Any) -> int:
        inner = form.values() if isinstance(form, dict) else form if isinstance(form, list) else None
        return 0 if inner is None else 1 + max(map(levels, inner), default=0)

    form = encode(value)
    count, depth = values_in(json.dumps(form).encode())
    assert depth == levels(form)
    assert count <= 3 * len(json.dumps(form))


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 500_000, b'"' * 1_000_001, b'"a\\', b'"', b"]]]]" * 100])
def test_unfinished_text_is_counted_in_one_pass(text: bytes) -> None:
    values_in(text)


@pytest.mark.parametrize(
    "line", [b"[" * 1000, b"[0" + b",0" * (MOST + 1) + b"]", b"{" * 300 + b"}" * 300, b" " * (LONGEST + 1)]
)
def test_a_line_out_of_bounds_is_refused(line: bytes) -> None:
    with pytest.raises(OutOfBounds):
        check(line)
    reader = FrameReader()
    assert [reader.take(line[i : i + 65_536]) for i in range(0, len(line), 65_536)].count([]) == -(-len(line) // 65_536)
    reader.take(b"\n")
    assert reader.refused


def test_a_line_that_never_ends_takes_no_memory() -> None:
    reader = FrameReader()
    piece = b"x" * (1 << 20)
    for _ in range(2 * LONGEST // len(piece)):
        reader.take(piece)
    assert len(reader._partial) <= LONGEST + len(piece)  # pyright: ignore[reportPrivateUsage]
    assert reader.refused


OUT_OF_BOUNDS = {
    "b'[' * 100_000": "100,000 levels",
    """b'{"t":"done","id":1,"answer":{"value":' + b'[' * 999 + b']' * 999 + b'}}'""": "1,001 levels",
    """b'{"t":"done","v":[' + b'0,' * 2_100_000 + b'0]}'""": "values",
    "b'x' * 60_000_000": "bytes",
    "b'x' * 60_000_000 + b'\\n' + b'y' * 60_000_000": "bytes",
}


@through_proc
@pytest.mark.parametrize("sent", OUT_OF_BOUNDS)
def test_a_worker_that_sends_what_is_out_of_bounds_is_replaced(repl: PythonREPL, sent: str) -> None:
    repl.start()
    result = repl.run(
        f"{FIND}import socket\ns = socket.socket(fileno=os.dup(link[0])); s.setblocking(True)\n"
        f"s.sendall(b'\\n' + {sent} + b'\\n'); import time; time.sleep(30)"
    )
    assert result.error == "died", result
    assert "it sent a message of" in result.message
    assert OUT_OF_BOUNDS[sent] in result.message
    assert repl.run("1 + 1").output == "2"


def test_a_large_answer_of_an_honest_cell_crosses_as_text(repl: PythonREPL) -> None:
    assert repl.run("final_answer = list(range(100_000))").answer.value == list(range(100_000))
    large = repl.run("final_answer = [[i] for i in range(400_000)]", timeout=60).answer
    assert large is not None
    assert large.form == "repr"
    assert len(large.value) < 100_000
    text = repl.run("final_answer = 'a,' * 1_000_000").answer
    assert text is not None
    assert text.value == "a," * 1_000_000


# -- who may speak


@through_proc
def test_a_flood_between_cells_ends_and_costs_the_repl_only(repl: PythonREPL) -> None:
    """A thread that a cell left writes for ever; the host read it for ever."""
    repl.run(
        f"{FIND}import threading\n"
        """
def flood():
    while True:
        os.write(link[0], b'{"t":"hello"}\\n' * 1000)
threading.Thread(target=flood, daemon=True).start()
"""
    )
    time.sleep(0.3)
    began = time.perf_counter()
    results = [repl.run("1 + 1") for _ in range(3)]
    assert time.perf_counter() - began < 5
    assert "2" in [r.output.splitlines()[-1] for r in results if r.output]


@through_proc
def test_large_messages_between_cells_cost_the_host_no_time(repl: PythonREPL) -> None:
    """The host read ten thousand of them, for 19 s, and looked at no clock."""
    repl.run(
        f"{FIND}import threading\n"
        """
def flood():
    while True:
        os.write(link[0], b'{"t":"hello","x":"' + b'x' * 57_000 + b'"}\\n')
threading.Thread(target=flood, daemon=True).start()
"""
    )
    time.sleep(0.3)
    began = time.perf_counter()
    told = ""
    while "nobody had asked" not in told:
        result = repl.run("import time; time.sleep(0.5)")
        told = result.output + result.message
        assert time.perf_counter() - began < 20
    assert repl.run("1 + 1").output.splitlines()[-1] == "2"


def test_results_of_tools_count_in_what_is_kept(repl: PythonREPL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.repl.host.calls._MOST_BYTES", 1_000_000)
    repl.add_tools({"large": lambda: "x" * 200_000})
    made = repl.run("for _ in range(10): large()").calls
    assert sum(len(str(call.outcome)) for call in made) < 1_100_000


CHILD = """
import json, time
if os.fork() == 0:
    os.setsid()
    job = json.loads(os.read(link[0], 1 << 16).split(b"\\n")[0])  # the next cell's
    forged = {"t": "done", "id": job["id"], "answer": {"value": "forged"}}
    os.write(link[0], b"\\n" + json.dumps(forged).encode() + b"\\n")
    time.sleep(60)
"""


@through_proc
@pytest.mark.skipif(not hasattr(socket, "SO_PASSCRED"), reason="the kernel does not say who sent a message")
def test_a_process_that_a_cell_left_cannot_answer_for_a_later_cell(repl: PythonREPL) -> None:
    repl.run(FIND + CHILD)
    results = [repl.run("import time; time.sleep(0.2); 1") for _ in range(6)]
    assert [r.answer for r in results] == [None] * 6
    assert results[-1].output.splitlines()[-1] == "1"


@through_proc
def test_a_child_that_a_cell_forked_takes_no_later_cells_job(repl: PythonREPL) -> None:
    """It waited for the job in the place of the REPL, which never saw it: the cell came to its time limit."""
    repl.run(
        FIND + "\nif os.fork() == 0:\n"
        "    os.setsid()\n"
        "    import time\n"
        "    begun = time.monotonic()\n"
        "    while time.monotonic() - begun < 30:\n"
        "        try:\n            os.read(link[0], 1 << 16)\n        except OSError:\n            pass\n"
    )
    assert [repl.run(f"{n}").output.splitlines()[-1] for n in range(20)] == [str(n) for n in range(20)]


def test_forged_displays_are_bounded(repl: PythonREPL) -> None:
    repl.start()
    result = repl.run(
        """
import sys
frame = sys._getframe()
while "job" not in frame.f_locals or not hasattr(frame.f_locals["self"], "displays"):
    frame = frame.f_back
items = frame.f_locals["self"].displays.items
items += [["text/x-shell", "rm"], ["text/html"], [1, 2], "x", ["text/html", "x" * 4_000_001]]
items += [["text/html", "x" * 100_000]] * 100
"""
    )
    assert result.error is None
    assert [d.mime for d in result.displays] == ["text/html"] * 40


# -- calls of host tools


def test_calls_beyond_what_runs_at_once_wait_for_their_turn(repl: PythonREPL) -> None:
    running: set[str] = set()
    most = 0

    def tool(n: int) -> int:
        nonlocal most
        running.add(threading.current_thread().name)
        most = max(most, sum(t.name in running for t in threading.enumerate()))
        return n

    repl.add_tools({"tool": tool})
    result = repl.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(200) as pool: print(sum(pool.map(tool, range(600))))",
        timeout=60,
    )
    assert result.output == f"{sum(range(600))}\n"
    assert most <= 128
