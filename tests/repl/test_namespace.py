"""Cells behave as in a notebook: one real module namespace."""

from __future__ import annotations

import shutil

import pytest

from rlm_loop.repl import PythonREPL

CELLS = {
    "type hints": (
        ["import typing\nclass N: pass\ndef h(a: 'N') -> 'N': ...", "typing.get_type_hints(h)['a'] is N"],
        "True",
    ),
    "pickling an own class": (
        ["import pickle\nclass Q:\n    pass", "type(pickle.loads(pickle.dumps(Q()))) is Q"],
        "True",
    ),
    "source of a function": (
        ["import inspect\ndef src():\n    return 'here'", "print(inspect.getsource(src))"],
        "def src():\n    return 'here'\n",
    ),
    "future import stays": (
        ["from __future__ import annotations", "def a(x: nope): ...\na.__annotations__['x']"],
        "'nope'",
    ),
    "own modules unseen": (
        ["import importlib.util as u\n[u.find_spec(m) for m in ('worker', 'session', 'clip')]"],
        "[None, None, None]",
    ),
    "no arguments": (["import sys\nlen(sys.argv)"], "1"),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_work_as_in_a_notebook(shared: PythonREPL, name: str) -> None:
    cells, expected = CELLS[name]
    result = [shared.run(cell) for cell in cells][-1]
    assert (result.output, result.error) == (expected, None)


def test_no_names_of_the_worker_are_seen() -> None:
    with PythonREPL() as repl:
        assert repl.run("[n for n in dir() if not n.startswith('__')]").output == "[]"


def test_packages_of_this_interpreter_can_be_imported(shared: PythonREPL) -> None:
    assert shared.get("__import__('pytest').__file__") == pytest.__file__


#: What of the default kind only the sandbox can do: in `hardened` a cell does not see its own descriptors and /dev/shm.
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap")


@needs_bwrap
def test_process_pools_work(shared: PythonREPL) -> None:
    shared.run("from concurrent.futures import ProcessPoolExecutor\ndef double(n): return 2 * n")
    code = "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as pool: got = pool.map(double, [1, 2])"
    assert shared.run(code).error is None
    assert shared.run("got").output == "[2, 4]"


def test_working_folder_and_files() -> None:
    files = {"data.csv": "a,b\r\n1,2\r\n", "sub/raw.bin": b"\x00\xff", "helper.py": "def hi(): return 'hi'\n"}
    with PythonREPL(files=files) as repl:
        assert repl.get("open('data.csv', newline='').read()") == "a,b\r\n1,2\r\n"
        assert repl.get("open('sub/raw.bin', 'rb').read()") == b"\x00\xff"
        assert repl.get("__import__('helper').hi()") == "hi"
        folder = repl.cwd
        assert folder.is_dir()
    assert not folder.exists()


def test_a_file_of_the_working_folder_does_not_replace_the_standard_library() -> None:
    with PythonREPL(files={"random.py": "raise RuntimeError('shadowed')"}) as repl:
        assert repl.run("import random; random.randint(1, 1)").output == "1"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x"])
def test_files_stay_inside_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="inside"):
        PythonREPL(files={name: ""})


def test_a_given_folder_is_used_and_kept(tmp_path: object) -> None:
    with PythonREPL(cwd=str(tmp_path)) as repl:
        repl.run("open('made', 'w').write('x')")
        folder = repl.cwd
    assert (folder / "made").read_text() == "x"


def test_variables_are_listed(repl: PythonREPL) -> None:
    repl.add_tools({"look": lambda: 1})
    repl.set("context", "text")
    repl.run("a = 1\n_b = 2\nimport json\nfinal_answer = 3")
    assert repl.variables == ("context", "a", "json")


def test_setup_runs_first_and_may_fail() -> None:
    from rlm_loop.repl import ReplError, SetupFailed

    with PythonREPL(setup="import math\nready = math.pi > 3") as repl:
        assert repl.run("ready").output == "True"
    for setup in ("1/0", "import os; os._exit(1)", "def f(:"):
        with PythonREPL(setup=setup) as repl, pytest.raises(SetupFailed, match="setup"):
            repl.run("1")
    with PythonREPL(cwd="/does/not/exist") as repl, pytest.raises(ReplError, match="does not exist"):
        repl.run("1")
    with PythonREPL(python="/does/not/exist") as repl, pytest.raises(ReplError, match="cannot start"):
        repl.run("1")


def test_only_allowed_environment_reaches_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("MY_TOKEN", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with PythonREPL() as repl:
        environ = repl.get("dict(__import__('os').environ)")
    assert "secret" not in str(environ)
    assert environ["OMP_NUM_THREADS"] == "1"
    assert "PATH" in environ


def test_open_repl_names_the_kinds() -> None:
    from rlm_loop.repl import open_repl

    for kind in ("auto", "subprocess"):
        with open_repl(kind, timeout=5) as repl:  # type: ignore[attr-defined]
            assert repl.run("1").output == "1"
    for kind, told in {"container": "image that is there", "nonsense": "auto, subprocess"}.items():
        with pytest.raises(ValueError, match=told):
            open_repl(kind)


def test_sets_are_ordered_the_same_in_every_process() -> None:
    seen = set()
    for _ in range(2):
        with PythonREPL() as repl:
            seen.add(repl.run("str({'alpha', 'beta', 'gamma', 'delta'})").output)
    assert len(seen) == 1
