"""Read the frames and the output of a worker, and trust neither; write frames to it, and values through files.

A cell can write anything to the worker's descriptors, so nothing in it may lead to an import, to a class that it names,
or to more memory than it took to send.  A line is bounded in bytes, depth and count before it is parsed.  `decode`
makes values of a closed list of types, all of which were imported before any cell ran.  An honest worker stays within
these bounds: what would not fit it sends as text (`worker.bounded`).  The host never waits for it to read.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import pickle
import shutil
import socket
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from rlm_loop.repl.contexts.on_disk import ContextError, ContextFile
from rlm_loop.repl.text import Ends
from rlm_loop.repl.worker import DEEPEST, RECORD, dumps, encode, parse, values_in
from rlm_loop.repl.worker import decode as from_form

LONGEST = 48 << 20
"""Bytes of one frame: two values of the largest size that a worker sends, and what was printed and displayed."""
MOST = 2_000_000
"""Values in one frame."""

_LEVELS = 4 * DEEPEST  # of JSON: a value takes up to three for one of its own
_AT_ONCE = 1 << 20  # bytes of a frame that are decoded at once: some 30 ms
_READ = 1 << 16


def within_bounds(line: bytes | bytearray) -> bool:
    """Return True for a line of no more values and levels than are allowed."""
    if len(line) <= MOST and line.count(b"[") + line.count(b"{") <= _LEVELS:
        return True
    count, depth = values_in(line)
    return count <= MOST and depth <= _LEVELS


class FrameReader:
    """Frames out of one stream.  They are checked for form only, and junk between them is passed over.

    `refused`: something came that is out of bounds, and its sender is not to be heard any longer.
    """

    def __init__(self) -> None:
        self._partial = bytearray()
        self.refused = False

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """Return the frames of the lines that are complete now."""
        self._partial += data
        if len(self._partial) > LONGEST + len(data):
            self._partial.clear()
            self.refused = True
        if b"\n" not in data:
            return []
        *lines, self._partial = self._partial.split(b"\n")
        frames: list[dict[str, Any]] = []
        for line in filter(None, lines):
            if not within_bounds(line):
                self.refused = True
                continue
            try:
                text = line.decode()
                frame: Any
                frame, end = parse(text)
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if end == len(text) and isinstance(frame, dict) and isinstance(frame.get("t"), str):
                frame["size"] = len(line)
                frames.append(cast("dict[str, Any]", frame))
        return frames


def decode(value: Any) -> Any:
    """Return the value of a JSON form that `worker.encode` can have written.

    Types: those of JSON, tuples, sets, bytes, dates.  Raises `ValueError` for anything else.
    """
    try:
        return from_form(value)
    except (TypeError, LookupError, ArithmeticError, RecursionError, AttributeError) as error:
        raise ValueError(f"no value that can be read ({type(error).__name__}: {error})") from None


def decode_within(value: Any, size: int, seconds: float) -> Any:
    """Decode a value of a frame of this many bytes; a large one in a thread, so that no clock and no Ctrl-C waits.

    Raises `ValueError` also where it takes longer than `seconds`.
    """
    if size <= _AT_ONCE:
        return decode(value)
    read: list[Any] = []

    def work() -> None:
        with contextlib.suppress(ValueError):
            read.append(decode(value))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if not read:
        raise ValueError("a value that cannot be read, or takes too long")
    return read[0]


class Output:
    """The output of one cell after the other, from the pipe `fd`: `cap` characters of its head, and of its tail."""

    def __init__(self, fd: int, cap: int) -> None:
        self.fd, self._most = fd, max(cap, RECORD)
        self._begin()

    def _begin(self) -> None:
        self._ends, self._printed = Ends(self._most), False
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def read(self) -> None:
        """Take what is in the pipe, without waiting."""
        for _ in range(16):  # a pipe holds less than this; a writer that never stops must not keep us here
            try:
                data = os.read(self.fd, _READ)
            except BlockingIOError:
                return
            self._printed = True
            self._ends.add(self._decode(data))

    def take(self) -> str:
        """Return what was printed since it was taken last, as a terminal would show it."""
        if not self._printed:
            return ""
        self._ends.add(self._decode(b"", True))
        text = self._ends.text()
        self._begin()
        return text


IN_FRAME = 1_000_000  # bytes or characters; above it a file is quicker than JSON on a pipe, and takes less memory
_ONE_SEND = 32_768  # bytes that a socket takes wholly or not at all
_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)
_NO_WAITING = _FLAGS | getattr(socket, "MSG_DONTWAIT", 0)


class Outgoing:
    """The way to one REPL.  Short frames go at once; long ones, and those behind them, go by a thread.

    So Ctrl-C, which strikes in the main thread, leaves no half frame behind, and a REPL that does not read stops
    nobody.  What cannot be sent since the REPL is gone is dropped.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._turns = threading.Lock()
        self._left: deque[bytes] = deque()

    def send(self, frame: Mapping[str, Any]) -> None:
        """Send a frame.  Safe from any thread."""
        data = (dumps(frame) + "\n").encode()
        with self._turns:
            if not self._left and len(data) <= _ONE_SEND:
                with contextlib.suppress(OSError):
                    self._sock.send(data, _NO_WAITING)
                    return
            self._left.append(data)
            if len(self._left) == 1:
                threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self._sock.sendall(self._left[0], _FLAGS)
            with self._turns:
                self._left.popleft()
                if not self._left:
                    return


def set_frame(name: str, value: Any, path: Path, in_place: bool = True) -> dict[str, Any]:
    """The `set` job for a value; writes `path` where the value goes through a file.  The copy is exact.

    What is on disk is read there `in_place`, else from a copy at `path`.
    Raises `TypeError` for a value that does not pickle.
    """
    frame: dict[str, Any] = {"t": "set", "name": name, "form": "frame"}
    if isinstance(value, ContextFile):
        if in_place:
            return value.frame(name)
        try:
            shutil.copyfile(value.path, path)
        except OSError as error:
            raise ContextError(f"the context {str(value.path)!r} cannot be copied: {error.strerror or error}") from None
        path.chmod(0o644)  # the cells may run as another user
        return value.frame(name, path)
    if value is None or type(value) in (bool, int, float) or (type(value) in (str, bytes) and len(value) <= IN_FRAME):
        return {**frame, "value": encode(value)}
    try:
        with path.open("wb") as f:
            pickle.dump(value, f, protocol=5)  # arrays (of a `DataFrame` too) as they lie in memory, without a copy
    except Exception as e:
        raise TypeError(f"cannot send {name!r} ({type(value).__name__}) to the REPL, it does not pickle: {e}") from e
    path.chmod(0o644)
    return {**frame, "form": "pickle", "source": str(path)}
