"""Contexts on disk: read where the cells run, exactly, when a cell first names them, behind every launcher."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_kinds import KINDS, session

from rlm_loop.repl import Limits, PythonREPL, ReplError
from rlm_loop.repl.contexts.large import LargeText
from rlm_loop.repl.contexts.on_disk import ContextFile, ContextFolder
from rlm_loop.repl.host.transfer import IN_FRAME, set_frame
from rlm_loop.repl.isolation.hardened import Hardened
from rlm_loop.repl.isolation.sandbox import Sandbox

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "folder"
    (root / "sub" / ".git").mkdir(parents=True)
    for name, raw in {"a.txt": b"alpha\r\n", "sub/b.md": b"beta", "sub/c.bin": b"\0\1", "sub/.git/x": b"x"}.items():
        (root / name).write_bytes(raw)
    (root / "sub" / "out").symlink_to("/etc/passwd")
    (root / "sub" / "in").symlink_to(root / "a.txt")
    return root


def test_a_file_is_an_ordinary_str_and_is_restored(any_session: Any, file: Path) -> None:
    any_session.set("context", ContextFile(file), reserved=True)
    assert any_session.run("x = 1").error is None
    assert any_session.run("print(type(context).__name__, len(context))").output == f"str {len(TEXT)}\n"
    assert any_session.run("context = 'invented'").error is None
    assert any_session.get("context") == TEXT
    assert any_session.get("context[:3].encode()") == b"a\r\n"


def test_a_folder_is_a_dict_read_file_by_file(any_session: Any, folder: Path) -> None:
    any_session.set("context", ContextFolder(folder), reserved=True)
    texts = {"a.txt": "alpha\r\n", "sub/b.md": "beta", "sub/c.bin": b"\0\1", "sub/in": "alpha\r\n"}
    assert (
        any_session.run("print(isinstance(context, dict), len(context), 'a.txt' in context)").output == "True 4 True\n"
    )
    assert any_session.get("list(context.items())") == list(texts.items())
    assert any_session.get("dict(context)") == texts
    assert any_session.get("[*context], [*context.values()], context.get('no', 3)") == ([*texts], [*texts.values()], 3)
    assert "KeyError: 'no'" in any_session.run("context['no']").message
    assert "make a copy" in any_session.run("context['a.txt'] = 'b'").message
    assert any_session.run("context = {}").error is None
    (folder / "a.txt").write_text("later")
    assert any_session.get("context['a.txt']") == "later"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_read_before_a_cell_names_it(kind: str, file: Path, tmp_path: Path) -> None:
    in_place = {"launcher": "plain"} if kind == "subprocess" else {}  # a sandbox holds on to the file
    with session(kind, tmp_path / "ipython", timeout=30, **in_place) as repl:
        repl.set("context", ContextFile(file), reserved=True)
        repl.run("x = 1")
        file.unlink()
        gone = repl.run("print(len(context))")
        assert gone.error == "runtime"
        assert "ContextGone: notes.txt cannot be read: No such file or directory" in gone.message
        assert repl.get("x") == 1
        file.write_bytes(b"back again, and longer than it was before, by far: " * 9)
        assert repl.get("len(context)") == len(TEXT.encode())  # as large as it was when the run began


def test_a_file_that_was_cut_says_so(file: Path) -> None:
    with PythonREPL() as repl:
        repl.set("context", ContextFile(file))
        file.write_bytes(b"short")
        assert "was cut to 5 bytes" in repl.run("context").message


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


def test_whatever_gets_hold_of_it_unnamed_reads_it(file: Path) -> None:
    with PythonREPL() as repl:
        repl.set("context", ContextFile(file))
        repl.run("v = [v for k, v in list(globals().items()) if k.startswith('contex')][0]")
        assert "not read yet" in repl.run("print(repr(v))").output
        assert repl.get("(len(v), v[:2], 'ä' in v, v.count('b'), str(v) == v.upper().lower())")[:4] == (
            len(TEXT),
            TEXT[:2],
            True,
            3,
        )


def test_naming_it_is_no_change_of_a_variable(file: Path) -> None:
    with PythonREPL() as repl:
        repl.set("context", ContextFile(file), reserved=True)
        repl.run("n = len(context)")
        assert set(repl.journal[-1].changed) == {"n"}


def test_the_users_file_is_never_touched(file: Path, folder: Path) -> None:
    with PythonREPL() as repl:
        for value in (ContextFile(file), ContextFolder(folder), ContextFile(file), "x" * (IN_FRAME + 1), 1):
            repl.set("context", value)
            assert repl.run("context").error is None
    assert file.read_bytes() == TEXT.encode()
    assert (folder / "a.txt").read_bytes() == b"alpha\r\n"


def test_it_comes_back_after_a_crash(file: Path) -> None:
    with PythonREPL() as repl:
        repl.set("context", ContextFile(file), reserved=True)
        repl.run("n = len(context)")
        repl.run("import os; os._exit(1)")
        assert repl.get("(n, len(context))") == (len(TEXT), len(TEXT))


@pytest.mark.parametrize("kind", ["hardened", "sandbox"])
def test_isolated_cells_reach_what_is_given_late_or_closed_to_others(kind: str, file: Path, folder: Path) -> None:
    file.chmod(0o600)
    (folder / "a.txt").chmod(0o600)
    folder.chmod(0o700)
    with isolated(kind) as repl:
        repl.set("first", ContextFile(file))
        repl.run("x = 1")
        repl.set("context", ContextFile(file), reserved=True)
        repl.set("more", ContextFolder(folder))
        assert repl.get("(first == context, context, more['a.txt'])") == (True, TEXT, "alpha\r\n")
        repl.run("import os; os._exit(1)")
        assert repl.get("(context, more['a.txt'])") == (TEXT, "alpha\r\n")
        assert repl.run(f"open({str(file.parent / 'other')!r}, 'w')").error == "runtime"


#: What of the default kind only the sandbox can do: in `hardened` a cell does not see its own descriptors and /dev/shm.
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap")


@needs_bwrap
@pytest.mark.parametrize("given", ["file", "value"])
def test_a_text_larger_than_memory_is_read_in_parts(tmp_path: Path, given: str) -> None:
    line = "0123456789 äöü the needle\n"
    text = line * 400_000
    path = tmp_path / "large.txt"
    path.write_text(text, newline="")
    value = ContextFile(path) if given == "file" else text
    with PythonREPL(limits=Limits(memory=32 << 20), timeout=120) as repl:
        repl.set("context", value, reserved=True)
        first = repl.run("kept = 1\nprint(len(context), context[:10], context[-7:-1], context[5_000_000])")
        assert f"{len(text)} 0123456789 needle {text[5_000_000]}" in first.output
        assert "does not fit into memory" in first.output
        assert repl.get("(context.find('needle', 3_000_000), 'nothing' in context)") == (
            text.find("needle", 3_000_000),
            False,
        )
        assert repl.get("sum(1 for line in context.lines() if line.endswith('needle'))") == 400_000
        told = repl.run("context.split()").message
        assert "has no 'split'" in told
        assert "lines()" in told
        assert repl.get("kept") == 1


def test_an_object_larger_than_memory_is_one_clear_line() -> None:
    with PythonREPL(limits=Limits(memory=32 << 20)) as repl:
        repl.set("context", ["x" * 100 + str(i) for i in range(300_000)])
        with pytest.raises(ReplError, match=r"cannot set 'context' .* takes about [\d,]+ bytes, more than this REPL"):
            repl.run("1")


def test_a_value_whose_package_is_missing_there_is_one_clear_line(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "only_here_frames.py").write_text("class Frame:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here_frames  # pyright: ignore[reportMissingImports]

    with PythonREPL() as repl:
        repl.set("context", only_here_frames.Frame())
        with pytest.raises(ReplError, match=r"has no usable only_here_frames, which .* install it there"):
            repl.run("1")


def test_objects_of_a_class_of_the_script_are_named_with_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a notebook's cell: pickle finds the class in `__main__` here, and in no other process."""
    order = type("Order", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Order", order, raising=False)
    with PythonREPL() as repl:
        repl.set("context", [order()])
        with pytest.raises(ReplError, match=r"a class of your script or notebook.*'Order'.*dataclasses\.asdict"):
            repl.run("1")


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
def test_large_lists_and_dicts_cross_piece_by_piece(tmp_path: Path, value: Any) -> None:
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


texts = st.text(st.sampled_from("ab\n😀ä€"), max_size=40)


@settings(max_examples=40)
@given(texts, texts.map(lambda t: t[:2]), st.integers(-45, 45) | st.none(), st.integers(-45, 45) | st.none())
def test_a_large_text_is_like_the_text(
    tmp_path_factory: pytest.TempPathFactory, text: str, part: str, a: int | None, b: int | None
) -> None:
    text += "end"
    path = tmp_path_factory.mktemp("large") / "t"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlm_loop.repl.contexts.large.STEP", 7)
        large = LargeText(str(path), len(text.encode()), "strict")
        assert len(large) == len(text)
        assert large[a:b] == text[a:b]
        assert large[a:b:3] == text[a:b:3]
        assert large[a:b:-2] == text[a:b:-2]
        assert [*large] == [*text]
        assert (part in large) == (part in text)
        assert large.count(part) == text.count(part)
        if part:
            start = a or 0
            assert large.find(part, start, b) == text.find(part, start, b)
        assert [*large.lines()] == text.split("\n")
        assert large[len(text) // 2] == text[len(text) // 2]
        assert large[-1] == text[-1]
        with pytest.raises(IndexError):
            large[len(text)]


def test_unreadable_files_of_a_folder(folder: Path) -> None:
    if os.geteuid() == 0:
        (folder / "dangling").symlink_to(folder / "nowhere")
        assert "dangling" not in ContextFolder(folder).sizes
        return
    (folder / "a.txt").chmod(0)
    with PythonREPL() as repl:
        repl.set("context", ContextFolder(folder))
        assert "ContextGone: 'a.txt' cannot be read: Permission denied" in repl.run("context['a.txt']").message
        assert repl.get("context['sub/b.md']") == "beta"
