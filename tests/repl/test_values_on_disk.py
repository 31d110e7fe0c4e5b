"""Contexts on disk: read where the cells run, exactly, behind every launcher."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from session_kinds import KINDS, session

from rlm_loop.repl import ContextFile, Hardened, PythonREPL, ReplError, Sandbox
from rlm_loop.repl.host.frames import IN_FRAME, set_frame

TEXT = "a\r\nb\rc\u2028ä😀\n" * 3


def isolated(kind: str) -> PythonREPL:
    launcher = {"hardened": Hardened(), "sandbox": Sandbox()}[kind]
    if problem := launcher.problem(sys.executable):
        pytest.skip(problem)
    return PythonREPL(launcher=launcher, timeout=30)


@pytest.fixture(params=[*KINDS, "hardened", "sandbox"])
def any_session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param in KINDS:
        with session(request.param, tmp_path / "ipython", timeout=30) as repl:
            yield repl
    else:
        with isolated(request.param) as repl:
            yield repl


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.encode())
    return path


def test_a_file_is_an_ordinary_str_and_is_restored(any_session: Any, file: Path) -> None:
    any_session.set("context", ContextFile(file), reserved=True)
    assert any_session.run("x = 1").error is None
    assert any_session.run("print(type(context).__name__, len(context))").output == f"str {len(TEXT)}\n"
    assert any_session.run("context = 'invented'").error is None
    assert any_session.get("context") == TEXT
    assert any_session.get("context[:3].encode()") == b"a\r\n"


def test_a_file_that_went_or_was_cut_is_said_and_the_session_goes_on(file: Path) -> None:
    with PythonREPL(launcher="plain") as repl:
        repl.set("context", ContextFile(file))
        file.unlink()
        with pytest.raises(ReplError, match=r"cannot set 'context'.*FileNotFoundError: .*notes\.txt"):
            repl.run("1")
        file.write_bytes(b"short")
        with pytest.raises(ReplError, match="was cut to 5 bytes"):
            repl.run("1")
        file.write_bytes(b"back again, and longer than it was before, by far: " * 9)
        assert repl.get("len(context)") == len(TEXT.encode())  # as large as it was when the run began


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"", ""),
        (b"\xef\xbb\xbfx", "\ufeffx"),
        (b"caf\xe9", b"caf\xe9"),
        (b"a\0b", b"a\0b"),
        (b"a line with one \0 in it", "a line with one \0 in it"),
        (b"x" * 65_536 + b"\0\xe9", "x" * 65_536 + "\0\udce9"),
        (b"x" + "ü".encode() * 40_000, "x" + "ü" * 40_000),
    ],
)
def test_what_a_file_becomes(tmp_path: Path, raw: bytes, value: Any) -> None:
    path = tmp_path / "f"
    path.write_bytes(raw)
    with PythonREPL() as repl:
        repl.set("context", ContextFile(path))
        assert repl.get("context.encode('utf-8', 'surrogateescape')" if isinstance(value, str) else "context") == raw
        assert repl.get("type(context).__name__") == type(value).__name__


def test_the_users_file_is_never_touched(file: Path) -> None:
    with PythonREPL() as repl:
        repl.set("kept", ContextFile(file), reserved=True)
        for value in (ContextFile(file), ContextFile(file), "x" * (IN_FRAME + 1), 1):
            repl.set("context", value)
            assert repl.run("context").error is None
        repl.run("import os; os._exit(1)")
        assert repl.get("kept") == TEXT
    assert file.read_bytes() == TEXT.encode()


@pytest.mark.parametrize("kind", ["hardened", "sandbox"])
def test_isolated_cells_reach_what_is_given_late_or_closed_to_others(kind: str, file: Path) -> None:
    file.chmod(0o600)
    with isolated(kind) as repl:
        repl.set("first", ContextFile(file))
        repl.run("x = 1")
        repl.set("context", ContextFile(file), reserved=True)
        assert repl.get("(first == context, context)") == (True, TEXT)
        repl.run("import os; os._exit(1)")
        assert repl.get("context") == TEXT
        assert repl.run(f"open({str(file.parent / 'other')!r}, 'w')").error == "runtime"


@pytest.mark.parametrize(
    "value",
    [
        ["a" * 200, b"b", 1, 2.5, None, True] * 5_000,
        dict.fromkeys(range(30000), "text" * 9),
        [{"a": ["text" * 99]} for _ in range(3_000)],
        {"k": ["x" * 99] * 12_000},
    ],
    ids=["leaves", "pairs", "records", "nested"],
)
def test_large_lists_and_dicts_cross_through_a_file(tmp_path: Path, value: Any) -> None:
    from rlm_loop.repl.worker import load

    frame = set_frame("context", value, tmp_path / "value")
    assert len(json.dumps(frame)) < 500
    assert load(frame) == value
    assert list(load(frame)) == list(value)


def test_the_frame_of_a_file_holds_its_place_and_nothing_of_it(file: Path) -> None:
    frame = set_frame("context", ContextFile(file), file.parent / "unused")
    assert frame["source"] == str(file)
    assert "path" not in frame
    assert not (file.parent / "unused").exists()
    assert "\\u2028" not in json.dumps(frame)
