"""What a hostile cell sends leads to no import, to no class of its choice, to no memory beyond its own size.

Semantics 61 and 62.
"""

from __future__ import annotations

import ast
import itertools
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from session_kinds import BudgetSpent, linux, needs_bwrap

from rlm_loop.repl import CellResult, Launch, PythonREPL, ReplError
from rlm_loop.repl.host import frames
from rlm_loop.repl.host.child import Child
from rlm_loop.repl.host.frames import LONGEST, FrameReader, decode, decode_within
from rlm_loop.repl.host.launch import WORKER, plain
from rlm_loop.repl.results import given as given_answer
from rlm_loop.repl.worker import values_in

pytestmark = linux  # finds the protocol's socket in /proc

FIND = """
import os
link = [int(f) for f in os.listdir('/proc/self/fd') if 'socket' in os.path.realpath(f'/proc/self/fd/{f}')]
"""


@pytest.fixture(params=["plain", pytest.param("auto", marks=needs_bwrap)])
def repl(request: pytest.FixtureRequest) -> Iterator[PythonREPL]:
    with PythonREPL(launcher=request.param, rebuild=False, timeout=5, grace=0.5) as session:
        yield session


# -- values

REFUSED: list[Any] = [
    {"~": "nope", "v": 1},
    {"~": 5},
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


def test_a_large_value_that_takes_too_long_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.repl.host.frames.decode", lambda _: time.sleep(1))
    began = time.perf_counter()
    with pytest.raises(ValueError, match="too long"):
        decode_within([1], 2 << 20, 0.1)
    assert time.perf_counter() - began < 0.9


def test_the_decoder_imports_nothing() -> None:
    lines = WORKER.read_text("utf-8")
    in_the_worker = ast.parse(lines[lines.index("def decode(") : lines.index("def safe_repr(")])
    whole = [ast.parse(Path(frames.__file__).read_text("utf-8")), in_the_worker]
    inner = [n for tree in whole for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)]
    assert not [n for n in inner if isinstance(n, ast.Import | ast.ImportFrom)]
    names = {n.id for n in [*inner, *ast.walk(in_the_worker)] if isinstance(n, ast.Name)}
    assert not {"__import__", "eval", "exec", "getattr"} & names


def test_the_worker_is_one_module_of_the_standard_library() -> None:
    nodes = [*ast.walk(ast.parse(WORKER.read_text("utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {n.partition(".")[0] for n in names} <= {*sys.stdlib_module_names, "IPython", "traitlets"}


def test_nothing_that_a_worker_sends_is_unpickled() -> None:
    for path in WORKER.parent.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        loads = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr in ("load", "loads", "Unpickler")]
        allowed = {"json", *(["marshal"] if path.name == "harden.py" else [])}  # byte code that the host wrote
        assert path == WORKER or {ast.unparse(n.value) for n in loads} <= allowed, path


# -- frames


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 500_000, b'"' * 1_000_001, b'"a\\', b'"', b"]]]]" * 100])
def test_unfinished_text_is_counted_in_one_pass(text: bytes) -> None:
    values_in(text)


def test_a_line_that_never_ends_takes_no_memory() -> None:
    reader = FrameReader()
    piece = b"x" * (1 << 20)
    for _ in range(2 * LONGEST // len(piece)):
        reader.take(piece)
    assert len(reader._partial) <= LONGEST + len(piece)  # pyright: ignore[reportPrivateUsage]
    assert reader.refused


OUT_OF_BOUNDS = [
    "b'[{' * 50_000",
    """b'{"t":"done","id":1,"answer":{"value":' + b'[' * 999 + b']' * 999 + b'}}'""",
    """b'{"t":"done","v":[' + b'0,' * 2_100_000 + b'0]}'""",
    "b'x' * 60_000_000",
    "b'x' * 60_000_000 + b'\\n' + b'y' * 60_000_000",
]


@pytest.mark.parametrize("sent", OUT_OF_BOUNDS)
def test_a_worker_that_sends_what_is_out_of_bounds_is_replaced(repl: PythonREPL, sent: str) -> None:
    repl.get("0")
    result = repl.run(
        f"{FIND}import socket\ns = socket.socket(fileno=os.dup(link[0])); s.setblocking(True)\n"
        f"s.sendall(b'\\n' + {sent} + b'\\n'); import time; time.sleep(60)",
        timeout=60,
    )
    assert (result.error, "more than may be sent" in result.message) == ("died", True), result
    assert repl.run("1 + 1").output == "2"


def test_a_large_answer_of_an_honest_cell_crosses_as_text(repl: PythonREPL) -> None:
    assert repl.run("final_answer = list(range(100_000))").answer.value == list(range(100_000))
    large = repl.run("final_answer = [[i] for i in range(400_000)]", timeout=60).answer
    assert (large.form, len(large.value) < 100_000) == ("repr", True)
    assert repl.run("final_answer = '[a,\"' * 500_000").answer.value == '[a,"' * 500_000


# -- who may speak


def await_refusal(repl: PythonREPL, result: CellResult) -> None:
    """Run cells until one tells that the REPL was given up: the result of the flood itself, or a later one."""
    for _ in range(1000):
        if "nobody had asked" in result.output + result.message:
            return
        result = repl.run("import time; time.sleep(0.02)")
    raise AssertionError(result)


@pytest.mark.parametrize("size", [0, 57_000])
def test_a_flood_between_cells_ends_and_costs_the_repl_only(repl: PythonREPL, size: int) -> None:
    """A thread that a cell left writes for ever; the host read it for ever, and looked at no clock."""
    result = repl.run(
        f'{FIND}import threading\nframe = b\'{{"t":"hello","x":"\' + b\'x\' * {size} + b\'"}}\\n\'\n'
        "def flood():\n    while True: os.write(link[0], frame)\n"
        "threading.Thread(target=flood, daemon=True).start()"
    )
    await_refusal(repl, result)
    assert repl.run("1 + 1").output.splitlines()[-1] == "2"


def test_a_flood_that_outlasts_the_clock_ends_too() -> None:
    """The host refused the same REPL again and again, for ever, where time was up before the messages were too many."""
    ticks = itertools.count()  # a second passes at each look
    with PythonREPL(launcher="plain", timeout=1e9, clock=lambda: float(next(ticks))) as repl:
        flood = 'def flood():\n    while True: os.write(link[0], b\'{"t":"hello"}\\n\')\n'
        result = repl.run(f"{FIND}import threading\n{flood}threading.Thread(target=flood, daemon=True).start()")
        await_refusal(repl, result)


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


def test_a_process_that_a_cell_left_cannot_answer_for_a_later_cell(repl: PythonREPL) -> None:
    repl.run(FIND + CHILD)
    results = [repl.run("import time; time.sleep(0.2); 1") for _ in range(6)]
    assert ([r.answer for r in results], results[-1].output.splitlines()[-1]) == ([None] * 6, "1")


def test_a_child_that_a_cell_forked_takes_no_later_cells_job(repl: PythonREPL) -> None:
    """It waited for the job in the place of the REPL, which never saw it: the cell came to its time limit."""
    repl.run(
        f"{FIND}if os.fork() == 0:\n    os.setsid()\n    import time\n    begun = time.monotonic()\n"
        "    while time.monotonic() - begun < 30:\n"
        "        try: os.read(link[0], 1 << 16)\n        except OSError: pass\n"
    )
    assert [repl.run(f"{n}").output.splitlines()[-1] for n in range(20)] == [str(n) for n in range(20)]


def test_forged_displays_are_bounded(repl: PythonREPL) -> None:
    repl.get("0")
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
    assert (result.error, [d.mime for d in result.displays]) == (None, ["text/html"] * 40)


def test_calls_beyond_what_may_run_at_once_are_refused(repl: PythonREPL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.repl.host.calls._AT_ONCE", 2)
    gate = threading.Event()
    repl.add_tools({"wait": lambda: gate.wait(30)})
    code = "from concurrent.futures import ThreadPoolExecutor, as_completed\npool = ThreadPoolExecutor(9)\n"
    code += "made = [pool.submit(wait) for _ in range(9)]\nprint(next(as_completed(made)).exception())"
    assert "2 calls at the same time" in repl.run(code, timeout=60).output
    gate.set()


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


@pytest.fixture(scope="module", params=[pytest.param("sandbox", marks=needs_bwrap), "plain"])
def forging(request: pytest.FixtureRequest) -> object:
    with PythonREPL(timeout=10, grace=0.5, launcher=request.param) as repl:
        yield repl


@pytest.mark.parametrize("frame", FORGED)
def test_forged_frames_do_no_harm(forging: PythonREPL, frame: str) -> None:
    forging.add_tools({"tool": lambda *a: len(a)})
    forging.run("1")
    sent = f"b'\\n' + {frame!r}.encode('utf-8', 'replace') + b'\\n'"
    result = forging.run(f"{FIND}os.write(link[0], {sent});")
    assert (result.error in (None, "died"), result.answer) == (True, None)
    assert forging.run("print(tool(1, 2))").output == "2\n"


def test_forged_frames_read_with_the_end_of_a_cell_cost_later_cells_nothing(forging: PythonREPL) -> None:
    for frame in ('{"t":"hello","pid":-1}', '{"t":"done"}', '{"t":"pipe"}'):
        forging.run(f"{FIND}os.write(link[0], b'\\n' + {frame!r}.encode() + b'\\n');")
        assert [forging.run(f"print({n})").output for n in range(3)] == ["0\n", "1\n", "2\n"]


# -- the socket


@pytest.fixture
def patient() -> object:
    with PythonREPL(timeout=60, grace=60, launcher="plain", rebuild=False) as repl:
        yield repl


IMITATED = f"""
import sys{FIND}
frame = sys._getframe()
while 'job' not in frame.f_locals: frame = frame.f_back
line = '{{"t":"done","id":%d,"interrupts":0}}' % frame.f_locals['job']['id']
os.write(link[0], b'\\n' + line.encode() + b'\\n')
"""


def test_a_cell_that_imitates_its_own_end_does_not_spoil_later_ones(patient: PythonREPL) -> None:
    first = patient.run(IMITATED + "print('one')").output
    more = [patient.run(f"print({n})").output for n in range(3)]
    assert (first + more[0]).removeprefix("one\n") == "0\n"  # what comes after its end may go to the next cell
    assert more[1:] == ["1\n", "2\n"]


def test_the_host_does_not_wait_for_a_repl_that_does_not_read(patient: PythonREPL) -> None:
    """As long as the earlier cell goes on, which only the time limit of the next one ends."""
    patient.run(IMITATED + "while True: pass")
    result = patient.run(f"big = {'x' * 5_000_000!r}", timeout=0.5)
    assert result.error in (None, "timeout")  # the second interrupt may strike this one
    assert patient.run("6 * 7").output == "42"


@pytest.mark.parametrize("how", ["os.close(link[0])", "__import__('socket').socket(fileno=link[0]).shutdown(2)"])
def test_a_repl_that_hangs_up_is_replaced(patient: PythonREPL, how: str) -> None:
    assert patient.run(f"{FIND}{how}\nimport time; time.sleep(600)").error == "died"  # no "timeout": at once
    assert patient.run("6 * 7").output == "42"


def test_what_was_printed_before_a_death_is_kept(patient: PythonREPL) -> None:
    result = patient.run("import os\nprint('x' * 60_000)\nos.kill(os.getpid(), 9)")
    assert (result.error, len(result.output)) == ("died", 60_001)


def test_long_and_short_frames_arrive_in_their_order(patient: PythonREPL) -> None:
    patient.add_tools({"give": "x".__mul__})
    sizes = [1, 5_000_000, 2, 40_000, 3, 32_000]
    code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(6) as pool:\n"
    assert patient.run(f"{code}    sizes = [len(t) for t in pool.map(give, {sizes})]\nsizes").output == str(sizes)


def slow(begun: Path, then: str = 'exec "$@"') -> Any:
    """A launcher that makes a file when it is half way."""

    def launch(python: str, options: Any) -> Launch:
        given = plain(python, options)
        script = f'b=$1; shift; sleep 0.2; : >"$b"; {then}'
        return Launch(("/bin/sh", "-c", script, "sh", str(begun), *given.argv), given.env)

    return launch


def test_the_start_is_no_part_of_the_first_cells_time(tmp_path: Path) -> None:
    """The cell is sent before the REPL is ready for it."""
    begun = tmp_path / "begun"
    with PythonREPL(launcher=slow(begun), timeout=10, clock=lambda: 20.0 * begun.exists()) as repl:
        assert repl.run("x = 1").seconds == 0
        assert repl.run("x").output == "1"
    begun.unlink()
    with PythonREPL(launcher=slow(begun)) as repl:
        repl.get("0")
        assert begun.exists()  # it waits for the REPL


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    with PythonREPL(launcher=slow(tmp_path / "begun", "echo no room >&2; exit 1")) as repl:
        for act in (lambda: repl.run("1"), lambda: repl.get("1")):
            with pytest.raises(ReplError, match="ended while starting: no room"):
                act()


def test_a_process_that_a_cell_left_prints_into_the_cell_that_runs(patient: PythonREPL) -> None:
    patient.run("import subprocess; noisy = subprocess.Popen('read x; echo late', shell=True, stdin=subprocess.PIPE)")
    assert patient.run("1").output == "1"
    assert patient.run("noisy.communicate(b'go\\n'); print('mine')").output == "late\nmine\n"


def test_a_cell_that_a_tool_ended_at_once_did_not_fail(patient: PythonREPL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report was there before the host looked at what the tool had raised: the cell would be run again."""
    receive = Child._receive  # pyright: ignore[reportPrivateUsage]

    def late(child: Child, seconds: float) -> Any:
        time.sleep(0.3)
        return receive(child, seconds)

    def stop() -> None:
        time.sleep(0.1)
        raise BudgetSpent

    patient.add_tools({"stop": stop})
    patient.run("1")
    monkeypatch.setattr(Child, "_receive", late)
    with pytest.raises(BudgetSpent):
        patient.run("stop()")
    assert patient.last.error == "budget"
