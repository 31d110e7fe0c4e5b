"""Cells in a Jupyter kernel: what is there besides what all sessions have, and what holds when things go wrong."""

from __future__ import annotations

import base64
import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyboard import press
from patience import Held, Stopwatch
from processes import gone, removed

from rlm_loop.actions import Display
from rlm_loop.repl import KernelREPL, Limits, ReplError, open_repl

pytest.importorskip("ipykernel", reason='needs ipykernel: pip install -e ".[kernel]"')
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descendants are found through /proc")


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelREPL]:
    with KernelREPL(timeout=60, limits=Limits(open_files=200)) as repl:
        yield repl


# -- rich outputs

SHOWN = {
    "a last expression": (
        "class T:\n    def _repr_html_(self): return '<b>t</b>'\n    def __repr__(self): return 'T!'\nT()",
        "T!",
        (Display("text/html", "<b>t</b>"),),
    ),
    "display": (
        "from IPython.display import HTML, display\nprint('a')\ndisplay(HTML('<i>x</i>'))\nprint('b')",
        "a\n<IPython.core.display.HTML object>\nb\n",
        (Display("text/html", "<i>x</i>"),),
    ),
    "the best form": (
        "display({'text/html': '<p>', 'image/svg+xml': '<svg/>', 'text/plain': 'p'}, raw=True)",
        "[picture: image/svg+xml]\n",
        (Display("image/svg+xml", "<svg/>"),),
    ),
    "one that is too large": ("display({'text/html': 'x' * 9_000_000, 'text/plain': 'big'}, raw=True)", "big\n", ()),
    "none": ("3", "3", ()),
    "before an error": (
        "display({'text/latex': '$x$', 'text/plain': 'x'}, raw=True)\n1/0",
        None,
        (Display("text/latex", "$x$"),),
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_rich_outputs_are_kept(kernel: KernelREPL, name: str) -> None:
    code, output, displays = SHOWN[name]
    result = kernel.run("from IPython.display import display\n" + code)
    assert result.displays == displays
    if output is not None:
        assert (result.output, result.error) == (output, None)


def test_figures_and_tables(kernel: KernelREPL) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    result = kernel.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", timeout=120)
    (figure,) = result.displays
    assert figure.mime == "image/png"
    assert base64.b64decode(figure.data).startswith(b"\x89PNG")
    assert result.output == "[picture: image/png, 640x480]\n"
    table = kernel.run("import pandas as pd\npd.DataFrame({'a': [1]})", timeout=120)
    assert table.output.split() == ["a", "0", "1"]
    assert "<table" in table.displays[0].data


# -- what a kernel could get wrong


def test_all_output_comes_in_the_order_written(kernel: KernelREPL) -> None:
    code = "import os, sys\nfor i in range(3):\n    print(i)\n    os.write(1, b'w')\n    os.write(2, b'e')\n"
    code += "    print('s', file=sys.stderr)\n    os.system('printf c')"
    assert kernel.run(code + ";").output == "0\nwes\nc1\nwes\nc2\nwes\nc"
    assert kernel.run("os.write(1, ('é' * 100_000 + '\\n').encode()); os.system(\"printf 'ü'\");").characters == 100_002


def test_many_calls_of_tools_at_once(kernel: KernelREPL) -> None:
    barrier = threading.Barrier(8, timeout=30)

    def meet(n: int) -> int:
        barrier.wait()  # passes only when eight calls are under way at once
        return n

    kernel.add_tools({"meet": meet})
    code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool: "
    code += "got = list(pool.map(meet, range(40)))\ngot == list(range(40))"
    assert kernel.run(code).output == "True"


def test_magics_work_on_the_same_variables(kernel: KernelREPL) -> None:
    kernel.run("m = 20")
    assert kernel.run("%who_ls int").output.count("'m'") == 1
    assert kernel.run("%%capture out\nprint(m)").error is None
    assert kernel.run("out.stdout").output == "'20\\n'"
    assert kernel.run("!echo $m").output == "20\n"
    assert kernel.run("get_ipython().user_ns['m'] is m").output == "True"


def test_a_clean_beginning(kernel: KernelREPL) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_API_KEY", "hidden")
        with KernelREPL(files={"random.py": "raise RuntimeError('shadowed')", "mine.py": "x = 4"}) as repl:
            assert repl.run("[n for n in dir() if not n.startswith('__')]").output == "[]"
            assert repl.variables == ()
            assert repl.run("import os; os.environ.get('MY_API_KEY')").output == ""
            assert repl.run("import random, mine; mine.x").output == "4"
            assert repl.run("import sys; len(sys.argv)").output == "1"
            assert repl.isolation == "kernel"
            folder = repl.cwd
    assert not folder.exists()


def test_limits_hold(kernel: KernelREPL) -> None:
    assert kernel.run("import resource; resource.getrlimit(resource.RLIMIT_NOFILE)[0]").output == "200"


# -- stopping, crashes, ends


@pytest.mark.slow
def test_what_cannot_be_interrupted_is_killed_and_the_variables_are_rebuilt() -> None:
    clock = Held(most=1.6)
    with KernelREPL(timeout=60, grace=0.5, clock=clock) as repl:
        repl.add_tools({"go": clock.go})
        repl.set("context", "stays")
        repl.run("x = 1")
        pid = repl.get("__import__('os').getpid()")
        clock.hold()
        watch = Stopwatch()
        in_c = "while True:\n    try: sum(range(10 ** 14))\n    except BaseException: pass"
        result = repl.run(f"print('partial', flush=True)\ngo()\n{in_c}", timeout=1.0)
        assert watch.fair < 1.0 + 0.5 + 0.5
        clock.free()
        assert (result.error, result.output) == ("timeout", "partial\n")
        assert "restarted" in result.message
        assert gone(pid)
        assert repl.run("print(context, x)").output == "stays 1\n"
        assert repl.get("__import__('os').getpid()") != pid


def test_a_crash_is_a_result() -> None:
    with KernelREPL(timeout=60) as repl:
        for code, cause in {
            "import os; os._exit(3)": "exit status 3",
            "import os; os.kill(os.getpid(), 11)": "SIGSEGV",
            "import os; os.closerange(0, 256)": "died (",
        }.items():
            repl.run("y = 2")
            result = repl.run("print('last words', flush=True)\n" + code)
            assert result.error == "died"
            assert cause in result.message
            assert result.output == "last words\n" or "closerange" in code
            assert repl.run("y").output.endswith("2")


RESTARTS = (
    "get_ipython().kernel.do_shutdown(True)",
    "get_ipython().ask_exit()",
    "exit(keep_kernel=False)",
    "%reset -f",
    "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
)


def test_a_session_survives_a_restart_that_a_cell_asked_for() -> None:
    with KernelREPL(timeout=60) as repl:
        repl.set("given", 7, reserved=True)
        repl.add_tools({"five": lambda: 5})
        for code in RESTARTS:
            repl.run(code)
            assert repl.run("given + five()").output == "12", code


CLUMSY = {
    "no stream": "import sys\nsys.stdout = None",
    "a stream that is a text": "import sys\nsys.stdout = 'text'",
    "a stream that raises": "import sys\nclass S:\n    def flush(self): raise ValueError\nsys.stdout = S()",
}


@pytest.mark.parametrize("name", CLUMSY)
def test_a_stream_that_a_cell_replaced_comes_back(kernel: KernelREPL, name: str) -> None:
    kernel.run(CLUMSY[name], timeout=30)
    assert kernel.run("print('next')").output == "next\n"


@pytest.mark.slow
def test_an_interrupt_does_not_reach_the_next_kernel() -> None:
    stream = "class S:\n    def write(self, s): pass\n    def flush(self):\n        while True: pass"
    with KernelREPL(timeout=60, grace=0.5) as repl:
        repl.run("1")
        stopped = repl.run(f"import sys\n{stream}\nsys.stdout = S()", timeout=0.5)
        assert stopped.error == "timeout"  # its kernel was replaced while the host still sent interrupts
        assert repl.run("print('next')").output == "next\n"


@linux
def test_a_kernel_without_descriptors_goes_on() -> None:
    with KernelREPL(timeout=60) as repl:
        repl.run("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")
        assert repl.run("print('one')").output == "one\n"


@linux
def test_close_ends_every_process() -> None:
    repl = KernelREPL()
    repl.run(
        "import os, subprocess\nplain = subprocess.Popen(['sleep', '600'])\n"
        "daemon = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "away = int(subprocess.check_output('setsid sleep 600 >/dev/null 2>&1 & echo $!', shell=True, text=True))"
    )
    pids = repl.get("[os.getpid(), plain.pid, daemon.pid, away]")
    folder = repl.cwd
    repl.close()
    repl.close()
    assert all(gone(p) for p in pids)
    assert not folder.parent.exists()


@pytest.mark.slow
def test_a_session_that_is_dropped_ends_its_kernel() -> None:
    before = set(threading.enumerate())
    fds = len(os.listdir("/dev/fd"))
    repl = KernelREPL()
    pid = repl.get("__import__('os').getpid()")
    del repl
    gc.collect()
    assert gone(pid)
    left = {t for t in threading.enumerate() if t not in before and not t.name.startswith("pymp")}
    for thread in left:
        thread.join(5)
    assert not [t for t in left if t.is_alive()]
    gc.collect()
    assert len(os.listdir("/dev/fd")) <= fds + 1


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_ctrl_c_stops_the_cell_and_keeps_the_session() -> None:
    with KernelREPL(timeout=60, grace=60) as repl:
        repl.add_tools({"press": press})
        repl.run("kept = 1")
        with pytest.raises(KeyboardInterrupt):
            repl.run("print('begun')\npress()\nwhile True: pass")
        assert repl.last is not None
        assert (repl.last.error, repl.last.output.split("\n")[0]) == ("interrupted", "begun")
        assert repl.run("kept").output == "1"


@linux
def test_a_kernel_does_not_outlive_a_host_that_is_killed(tmp_path: Path) -> None:
    script = f"""
    from rlm_loop.repl import KernelREPL
    repl = KernelREPL()
    pid = repl.get("__import__('os').getpid()")
    open({str(tmp_path / "folder")!r}, "w").write(str(repl.cwd.parent))
    open({str(tmp_path / "pid")!r}, "w").write(str(pid) + "\\n")
    repl.run("while True: pass")
    """
    host = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
            assert host.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.3)
    finally:
        host.kill()
        host.wait()
    assert gone(int((tmp_path / "pid").read_text()))
    assert removed(Path((tmp_path / "folder").read_text()))


# -- which kernel


def spec(folder: Path, name: str, **content: Any) -> None:
    place = folder / "kernels" / name
    place.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    content = {"argv": argv, "display_name": name, "language": "python", **content}
    (place / "kernel.json").write_text(json.dumps(content))


def test_any_kernelspec_for_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    spec(tmp_path, "mine", env={"OF_THE_SPEC": "yes"})
    spec(tmp_path, "broken", argv=[sys.executable, "-c", "raise SystemExit('no such thing')"])
    with open_repl("kernel", kernel="mine") as repl:
        assert repl.run("import os; os.environ['OF_THE_SPEC']").output == "'yes'"
    for name, message in {
        "nowhere": "No such kernel named nowhere; there are: .*mine",
        "broken": "ended while starting",
    }.items():
        with KernelREPL(name) as repl, pytest.raises(ReplError, match=message):
            repl.run("1")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jupyter_client.kernelspec", None)
    with KernelREPL() as repl, pytest.raises(ReplError, match=r'pip install -e "\.\[kernel\]"'):
        repl.run("1")


# -- the side channel
