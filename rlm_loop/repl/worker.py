"""The REPL's own process: run as a script, standard library only (and IPython on request), never imports the package.

Frames are JSON without blanks, one a line, on one socket to the host.  They begin with their type `t`:

    host -> REPL   exec, eval, set, tools, new_run, drop, ping (each with an `id`); reply
    REPL -> host   hello, call, done

The first message brings the descriptor of a pipe for all that is printed.  Descriptor 0 is the life line: a pipe of
which only the host has the other end.  When that is closed, by the host or by its death, the kernel kills the REPL's
process group, whatever a cell is doing.

The first half (the codec) is imported by the host too; importing this module does nothing else.  A kernel session runs
it by another Python, 3.8 or newer, with none of our dependencies: hence the old syntax.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # the script's folder would let `import base` find our files
    sys.path[:] = [p for p in sys.path if p != __file__.rpartition("/")[0]]

import _ast  # `ast` and `socket` would take a tenth of the start
import _signal  # pyright: ignore[reportMissingImports]  # `signal` makes an enumeration of all that it gives back
import _socket
import base64
import builtins
import collections
import contextlib
import datetime
import io
import itertools
import json
import linecache
import os
import re
import select
import signal
import struct
import threading
import traceback
import types

TYPE_CHECKING = False  # importing `typing` would cost a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# ------------------------------------------------------------------------------------------------ codec

TAG = "~"  # {"~": kind, "v": payload} stands for a value that JSON has no form for
DEEPEST = 60  # levels of nesting; the host's own stack may be deep already
_ALIKE = 16  # different keys that may share a hash
_DIGITS = 1_000_000  # of a number; arithmetic beyond it takes minutes
_PLAIN_DIGITS = 10_000  # bits; longer ints go as hex, since decimal text of them is quadratic and limited
_LARGEST, _MOST = 20 << 20, 500_000  # characters and values of one value from a cell; the host refuses twice that


class ToolError(RuntimeError):
    """A host tool raised; the text is `Type: message` of what it raised."""

    __module__ = "builtins"  # so that a traceback has the plain name


class SubCallError(ToolError):
    """A sub-call gave no answer; the text says why.  Cells know it by name."""

    __module__ = "builtins"


class DepthExceeded(SubCallError):
    """A sub-call would be deeper than is allowed."""

    __module__ = "builtins"


class SubAnswer(str):
    """An answer of a batch of sub-calls: the text itself, which also says that it is one."""

    ok = True
    error = None


class SubFailure:
    """A failed sub-call of a batch.  It is no text, so that it cannot be taken for an answer."""

    ok = False

    def __init__(self, error: str) -> None:
        self.error = error

    def __str__(self) -> str:
        raise SubCallError(self.error)

    def __repr__(self) -> str:
        return f"<failed: {self.error}>"

    def __bool__(self) -> bool:
        return False


def tool_error(text: str) -> ToolError:
    """The exception for what a host tool raised, given as `Type: message`: sub-calls have types of their own."""
    left = text
    for _ in range(3):  # such as "ToolError: runtime: SubCallError: no route"
        kind, _colon, left = left.partition(": ")
        if kind in _SUBCALLS:
            return _SUBCALLS[kind](left)
    return ToolError(text)


_SUBCALLS = {"SubCallError": SubCallError, "DepthExceeded": DepthExceeded}


def encode(value: Any, depth: int = 0) -> Any:
    """The JSON form that `decode` turns into an equal value, of the base where the type is a subclass (a Counter is a
    dict, a numpy float a float); raises `TypeError` where there is none."""
    kind = type(value)
    if value is None or kind in (bool, float, str) or (kind is int and value.bit_length() < _PLAIN_DIGITS):
        return value  # in a text, two lone surrogates side by side become one character
    if depth > DEEPEST:
        raise TypeError("nested too deeply, or contains itself")

    def inner(v: Any) -> Any:
        return encode(v, depth + 1)

    if kind is list:
        return [inner(v) for v in value]
    if kind is dict:
        if TAG not in value and all(type(k) is str for k in value):
            return {k: inner(v) for k, v in value.items()}
        return {TAG: "dict", "v": [[inner(k), inner(v)] for k, v in value.items()]}
    if kind in (tuple, set, frozenset):
        return {TAG: kind.__name__, "v": [inner(v) for v in value]}
    if kind in _PACK:
        name, pack = _PACK[kind]
        return {TAG: name, "v": pack(value)}
    return inner(_plain(value, kind))


_PACK: dict[type, tuple[str, Callable[[Any], str]]] = {
    int: ("int", hex),
    bytes: ("bytes", lambda v: base64.b64encode(v).decode()),
    datetime.datetime: ("datetime", datetime.datetime.isoformat),
    datetime.date: ("date", datetime.date.isoformat),
    SubAnswer: ("answer", str.__str__),
    SubFailure: ("failure", lambda v: v.error),
}


def _plain(value: Any, kind: type) -> Any:
    """The equal value of a built-in type."""
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.tolist()
    bases: tuple[Any, ...] = (str, int, float, list, tuple, dict, set, frozenset, bytes)
    for base in bases:
        if isinstance(value, base):
            return str.__str__(value) if base is str else base(value)
    if isinstance(value, datetime.datetime):
        return datetime.datetime.fromisoformat(value.isoformat())
    raise TypeError(kind.__name__)


def decode(value: Any) -> Any:
    """The value of a JSON form; anything that `encode` cannot have written raises.

    The form may come from a cell: nothing in it leads to an import, to a class that it names, or to more memory or
    time than it took to send.
    """
    if type(value) is list:
        return [decode(v) for v in value]
    if type(value) is not dict:
        return value
    kind = value.get(TAG)
    if kind is None:
        return {k: decode(v) for k, v in value.items()}
    return _UNPACK[kind](value["v"])


def _items(form: Any) -> list[Any]:
    if not isinstance(form, list):
        raise TypeError("no list")
    return [decode(v) for v in form]


def _int(form: Any) -> int:
    if len(form) > _DIGITS:
        raise ValueError("too many digits")
    return int(form, 16)


def _hashable(keys: list[Any]) -> list[Any]:
    """Return values that are to be hashed, unless many different ones share a hash: to tell these apart would take
    the square of their number."""
    groups: dict[int, list[Any]] = {}
    for key in keys:
        groups.setdefault(hash(key), []).append(key)
    for group in groups.values():
        if len(group) > _ALIKE and len({(type(k), repr(k)) for k in group}) > _ALIKE:
            raise ValueError("keys that were chosen to collide")
    return keys


def _dict(form: Any) -> dict[Any, Any]:
    pairs = _items(form)
    _hashable([key for key, _ in pairs])
    return dict(pairs)


_UNPACK: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda v: tuple(_items(v)),
    "set": lambda v: set(_hashable(_items(v))),
    "frozenset": lambda v: frozenset(_hashable(_items(v))),
    "dict": _dict,
    "bytes": lambda v: base64.b64decode(v, validate=True),
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "answer": SubAnswer,
    "failure": SubFailure,
    "int": _int,
}


def safe_repr(value: Any, limit: int) -> str:
    """`repr` that never raises an `Exception`, cut in the middle to about `limit` characters."""
    try:
        text = repr(value)
    except Exception as e:
        text = f"<{type(value).__name__} object whose repr raised {type(e).__name__}>"
    return ends(text, limit // 2)


_SIZED = frozenset((list, dict, set, bytearray, collections.deque, collections.Counter, collections.defaultdict))
_TABLES = ("DataFrame", "Series", "ndarray")


def mark(value: Any) -> tuple[int, Any]:
    """Return the identity and the size of a value: one differs after most changes.  It keeps no value alive."""
    kind = type(value)
    if kind in _SIZED:
        return id(value), len(value)
    return id(value), str(getattr(value, "shape", "")) if kind.__name__ in _TABLES else 0


def form_of(value: Any, limit: int) -> Any:
    """The form in which a value crosses, or its `repr` where it has none."""
    try:
        return encode(value)
    except Exception:
        return safe_repr(value, limit)


def bounded(value: Any, limit: int) -> dict[str, Any]:
    """`{"value": ...}` where a value of a cell crosses to the host and keeps within bounds, else `{"repr": ...}`."""
    with contextlib.suppress(Exception):
        form = encode(value)
        text = dumps(form)
        if len(text) < _MOST or (len(text) <= _LARGEST and values_in(text.encode())[0] <= _MOST):
            return {"value": form}
    return {"repr": safe_repr(value, limit)}


def values_in(text: bytes | bytearray) -> tuple[int, int]:
    """Estimate how many values and levels JSON text has; nothing is built of it."""
    bare = re.sub(rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', b"", text)  # commas within strings separate nothing
    depth = deepest = 0
    for bracket in bare.translate(None, _NO_BRACKET):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{"), deepest


_NO_BRACKET = bytes(c for c in range(256) if c not in b"[]{}")
dumps = json.JSONEncoder(separators=(",", ":")).encode
parse = json.JSONDecoder().raw_decode  # `json.loads` looks for blanks before and after


# ------------------------------------------------------------------------------------------- interrupts


class Interrupts:
    """Decides what SIGINT does: raise in a cell's own code, wait while frames are handled, nothing between cells.

    `with interrupts:` defers, in the main thread, where Python runs handlers, except while it is `waiting` for frames.
    """

    def __init__(self) -> None:
        self.main = threading.get_ident()
        self.cell: int | None = None
        self.held = 0
        self.waiting = self.pending = False
        self.count = 0
        _signal.signal(signal.SIGINT, self.on_signal)

    def __enter__(self) -> None:
        if threading.get_ident() == self.main:
            self.held += 1

    def __exit__(self, *_: Any) -> None:
        if threading.get_ident() == self.main:
            self.held -= 1
            if not self.held:
                self.check()

    def check(self) -> None:
        """Raise an interrupt that was deferred."""
        if self.pending and threading.get_ident() == self.main:
            self.pending = False
            if self.cell is not None:
                raise KeyboardInterrupt

    def on_signal(self, *_: Any) -> None:
        if self.cell is None:
            return
        self.count += 1
        self.pending = bool(self.held) and not self.waiting
        if not self.pending:
            self.waiting = False
            raise KeyboardInterrupt


# --------------------------------------------------------------------------------------- frames and calls


class HostEnded(BaseException):
    """The host ends this cell; not an `Exception`, so ordinary handlers in the cell cannot swallow it."""


class Link:
    """Frames to and from the host, and calls of host tools from any thread of the cell.

    There is no reader thread: one of the waiting threads reads and hands out what it reads, the others wait for it.
    Bytes once read are always handed over, because interrupts are deferred while that happens.
    """

    def __init__(self, sock: _socket.socket, interrupts: Interrupts) -> None:
        self.sock, self.interrupts = sock, interrupts
        self.pid = os.getpid()
        self.jobs: collections.deque[dict[str, Any]] = collections.deque()
        self._waiting: dict[int, dict[str, Any]] = {}
        self._ids = itertools.count(1)
        self._news = threading.Condition(threading.Lock())
        self._writing = threading.Lock()
        self._reading = False
        self._partial = bytearray()
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        # A child that a cell forks reads nothing there, so it does not take the next cell's job by accident.  One that
        # C forks can still read a job, but not answer it: that cell comes to its time limit.
        os.register_at_fork(after_in_child=lambda: os.dup2(0, sock.fileno(), inheritable=False))

    def send(self, frame: dict[str, Any]) -> None:
        # The line break in front ends what a cell may have written to this descriptor.
        data = b"\n" + dumps(frame).encode() + b"\n"
        with self.interrupts, self._writing:
            self.sock.sendall(data)

    def next_job(self) -> dict[str, Any]:
        while not self.jobs:
            self._wait(self.jobs)
        return self.jobs.popleft()  # nobody else takes one

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if os.getpid() != self.pid:
            raise RuntimeError(f"{name}() works in the REPL's own process only, not in a forked child; use threads")
        if (cell := self.interrupts.cell) is None:
            raise RuntimeError(f"{name}() was called by a thread whose cell has ended")
        frame: dict[str, Any] = {"t": "call", "cell": cell, "name": name}
        frame["args"] = [_crossing(a) for a in args]
        frame["kwargs"] = {k: _crossing(v) for k, v in kwargs.items()}
        with self.interrupts:
            slot: dict[str, Any] = {}
            number = next(self._ids)
            self._waiting[number] = slot
            try:
                self.send({**frame, "id": number})
                self._wait(slot)
            finally:
                self._waiting.pop(number, None)
        if "end" in slot:
            raise HostEnded(slot["end"])
        if "error" in slot:
            raise tool_error(slot["error"])
        return decode(slot.get("value"))

    def abandon_calls(self) -> None:
        """The cell is over: threads of it that still wait for a reply get an error."""
        with self._news:
            for slot in [*self._waiting.values()]:
                slot.setdefault("error", "the cell has ended")
            self._news.notify_all()

    def _wait(self, news: Any) -> None:
        """Wait until there is something in `news`."""
        with self.interrupts:
            main = threading.get_ident() == self.interrupts.main
            while True:
                with self._news:
                    if news:
                        return
                    lead = not self._reading
                    if lead:
                        self._reading = True
                    else:
                        self._news.wait(0.05 if main else None)  # a lock cannot be woken by a deferred interrupt
                if lead:
                    frames: list[dict[str, Any]] = []
                    try:
                        frames = self._read(main)
                    finally:
                        with self._news:
                            for frame in frames:
                                if frame["t"] == "reply":
                                    self._waiting.get(frame["id"], {}).update(frame)
                                else:
                                    self.jobs.append(frame)
                            self._reading = False
                            self._news.notify_all()
                self.interrupts.check()

    def _read(self, main: bool) -> list[dict[str, Any]]:
        """The frames that come next, if any are whole."""
        self.interrupts.check()
        self.interrupts.waiting = main
        self._poll.poll()
        self.interrupts.waiting = False
        data = self.sock.recv(1 << 16)
        if not data:
            os._exit(0)  # the other side is gone
        self._partial += data
        if b"\n" not in data:
            return []
        *lines, self._partial = self._partial.split(b"\n")
        return [parse(line.decode())[0] for line in lines if line]


_CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)


def _crossing(value: Any) -> Any:
    """An argument on its way to a host tool: exact where it can be, a table as CSV, else its repr."""
    if hasattr(value, "to_csv"):
        with contextlib.suppress(Exception):
            value = value.to_csv()
    return next(iter(bounded(value, 1_000_000).values()))


# ------------------------------------------------------------------------------------------------ output


class _Writer(io.BufferedWriter):
    """Writer that stays open: a cell may close `sys.stdout`, and a handler of `logging` keep its cell's stream."""

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.flush()


class Output:
    """`sys.stdout` and `sys.stderr` of the cells: one line-flushed writer over descriptor 1, a pipe to the host.

    They are made anew where a cell left them unusable.  Threads and processes that a cell leaves running write to the
    cell that runs, as in IPython.
    """

    def __init__(self, writer: int) -> None:
        self.writer = writer
        self.stdout: Any = None
        self.stuck: list[Any] = []

    def open_cell(self) -> None:
        os.dup2(self.writer, 1)  # where a cell closed it, this ends the REPL
        os.dup2(self.writer, 2)
        os.set_blocking(1, True)  # a cell, or a program that it ran, may have changed the pipe
        try:
            usable = self.stdout.buffer is self.stderr.buffer
        except (AttributeError, ValueError):  # not there yet; detached
            usable = False
        if not usable:  # making them takes a tenth of a trivial cell
            raw = _Writer(io.FileIO(1, "wb", closefd=False))
            self.stdout, self.stderr = (
                io.TextIOWrapper(raw, "utf-8", "backslashreplace", "\n", line_buffering=True, write_through=True)
                for _ in "12"
            )
        sys.stdout, sys.stderr, sys.stdin = self.stdout, self.stderr, io.TextIOWrapper(io.BytesIO(), "utf-8")

    def close_cell(self) -> None:
        with contextlib.suppress(Exception):  # the cell's own may be anything
            sys.stdout.flush()
        try:
            self.stdout.flush()
        except Exception:  # descriptor 1 takes nothing: collected, it would write what is left into a later cell
            self.stuck.append((self.stdout, self.stderr))
            self.stdout = None


# ---------------------------------------------------------------------------------------------- displays

RICH = ("image/png", "image/jpeg", "image/svg+xml", "text/html", "text/markdown", "text/latex")  # best first
MOST_DISPLAYED = 4_000_000  # characters of a cell's displays
MOST_DISPLAYS = 50  # of a cell


class Displays:
    """Pictures and other rich forms that a cell shows its user; the model reads a line of text for each picture.

    As in a notebook, `plt.show()` and the end of a cell show the open figures and close them.
    """

    def __init__(self) -> None:
        self.items: list[list[str]] = []

    def take(self) -> list[list[str]]:
        """Return the MIME type and data of what was displayed, and forget it."""
        items, self.items = self.items, []
        return items

    def show(self, *values: Any, raw: bool = False, **_: Any) -> None:
        """Display values, as IPython's `display` does."""
        for value in values:
            self.publish(value if raw else {"text/plain": str(value), **self.bundle(value)})

    def publish(self, data: Any, *_: Any, **__: Any) -> None:
        """Keep a MIME bundle and print its text, unless that is a picture's."""
        if not self.add(data) and data.get("text/plain"):
            print(data["text/plain"])

    def add(self, bundle: Any) -> bool:
        """Keep the best form in a MIME bundle where there is room; return True after a line for a picture."""
        kind = next((k for k in RICH if bundle.get(k)), "")
        if not kind:
            return False
        data: Any = bundle[kind]
        data = base64.b64encode(data).decode() if isinstance(data, bytes) else str(data)
        picture = kind.startswith("image/")
        if picture:
            size = ""
            if data.startswith("iVBORw0KGgo"):  # a PNG, with its size in the first chunk
                size = ", {}x{}".format(*struct.unpack(">2I", base64.b64decode(data[:32])[16:24]))
            print("[picture: " + kind + size + "]")
        room = MOST_DISPLAYED - sum(len(item[1]) for item in self.items)
        if len(data) <= room and len(self.items) < MOST_DISPLAYS:
            self.items.append([kind, data])
        return picture

    def bundle(self, value: Any) -> dict[str, Any]:
        """Return the best rich form of a value by its MIME type, by the methods that Jupyter asks."""
        kind: Any = type(value)
        with contextlib.suppress(Exception):
            if kind.__module__ == "matplotlib.figure":
                raw = io.BytesIO()
                value.savefig(raw, format="png")
                sys.modules["matplotlib._pylab_helpers"].Gcf.destroy_fig(value)  # shown once
                return {"image/png": raw.getvalue()}
            for mime in RICH:
                method = "_repr_" + mime.partition("/")[2].partition("+")[0] + "_"
                if hasattr(kind, method) and (data := getattr(value, method)()):
                    return {mime: data[0] if isinstance(data, tuple) else data}
        return {}

    def flush(self, *_: Any, **__: Any) -> None:
        """Show the open figures of Matplotlib and close them."""
        helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
        for manager in helpers.Gcf.get_all_fig_managers() if hasattr(helpers, "Gcf") else ():
            figure = manager.canvas.figure
            if figure.axes or figure.lines:
                self.add(self.bundle(figure))
            helpers.Gcf.destroy(manager.num)

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        """Find Matplotlib's backend, as a finder of `sys.meta_path`: its `show` shows the figures here."""
        if name != "matplotlib.backends.backend_agg":
            return None
        from importlib.machinery import PathFinder

        spec: Any = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            module.show = self.flush

        spec.loader.exec_module = exec_module
        return spec


# ------------------------------------------------------------------------------------------------ errors


def explain(error: BaseException, is_user: Callable[[str], bool], seen: tuple[int, ...] = ()) -> list[str]:
    """The traceback of the user's frames only, as lines.  Causes that never touched the user's code are left out."""
    lines: list[str] = []
    seen = (*seen, id(error))
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is not None and id(earlier) not in seen and _user_stack(earlier, is_user):
        lines += explain(earlier, is_user, seen)
        how = "caused" if error.__cause__ else "was being handled during"
        lines.append(f"\nThe above exception {how} the following one:\n\n")
    stack = _user_stack(error, is_user)
    if stack:
        lines += ["Traceback (most recent call last):\n", *stack.format()]
    lines += traceback.format_exception_only(type(error), error)
    for i, sub in enumerate(getattr(error, "exceptions", ()) if hasattr(error, "split") else (), 1):
        lines.append(f"  ({i}) ")
        lines += [("" if n == 0 else "      ") + part for n, part in enumerate(explain(sub, is_user, seen))]
    return lines


def _user_stack(error: BaseException, is_user: Callable[[str], bool]) -> traceback.StackSummary:
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    # Rebuilt without columns: the marks under a line cost tokens and differ between Python versions.
    return traceback.StackSummary.from_list(
        [traceback.FrameSummary(f.filename, f.lineno, f.name, lookup_line=False) for f in frames if is_user(f.filename)]
    )


def one_line(error: BaseException) -> str:
    try:
        text = "" if isinstance(error, SystemExit) and error.code is None else str(error)
    except Exception:
        text = ""
    first = text.strip().split("\n", 1)[0][:400]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


# ------------------------------------------------------------------------------------------------- cells


class AnswerGiven(SystemExit):
    """Ends the cell at `final_answer(value)`; a thread that raises it ends quietly."""


class AnswerSlot:
    """The value of `final_answer` while no answer is set: call it, or assign to the name.

    This, or an answer of an earlier cell, is found in `shown` (the namespace's built-ins).  So an assignment by the
    running cell is simply the name being in the namespace, whatever its value.
    """

    def __init__(self, names: dict[str, Any], shown: Any) -> None:
        self._names, self._shown = names, shown
        self._earlier: Any = self
        self._before: Any = self  # what the name is bound to as a cell begins, for `del`
        shown[_ANSWER] = self

    def __call__(self, answer: Any) -> None:
        self._names[_ANSWER] = self._earlier if answer is self else answer  # `final_answer(final_answer)` confirms
        raise AnswerGiven("the answer was given")

    def __repr__(self) -> str:
        return "<final_answer is not set: assign to it, or call final_answer(value)>"

    def begin(self, code: str) -> None:
        """Before a cell: an earlier answer moves out of the namespace, where it could be taken for this cell's."""
        self._earlier = self._shown[_ANSWER] = self._names.pop(_ANSWER, self._earlier)
        self._before = self
        text = code.replace(" ", "")
        if "del" + _ANSWER in text:  # else `del` would not find it
            self._names[_ANSWER] = self._before = self._earlier
            self._earlier = self._shown[_ANSWER] = self
        elif _ANSWER + "(" in text:  # a value could be read, but not called
            self._shown[_ANSWER] = self

    def given(self) -> bool:
        """True where this cell set an answer: it is in the namespace."""
        return _ANSWER in self._names and self._names[_ANSWER] is not self._before

    def forget(self) -> None:
        """No answer was given: a new run begins."""
        self._names.pop(_ANSWER, None)
        self._earlier = self._shown[_ANSWER] = self

    def hide(self) -> None:
        """Take the name out of both."""
        self._earlier = self._names.pop(_ANSWER, self._earlier)
        self._shown.pop(_ANSWER, None)


_ANSWER = "final_answer"


def cut(text: str, cap: int) -> str:
    """Head and tail of a text, enough for the host to clip it to `cap`, never a giant frame."""
    return ends(text.encode("utf-8", "backslashreplace").decode(), max(cap, RECORD))


def ends(text: str, half: int) -> str:
    """So many characters of each end of a text, with a mark between where it is longer."""
    return text if len(text) <= 2 * half else text[:half] + left_out(len(text) - 2 * half) + text[-half:]


def left_out(count: int) -> str:
    """The mark in the place of so many characters."""
    return f"\n... [{count} characters left out] ...\n"


def restore(names: dict[str, Any], reserved: dict[str, Any]) -> list[str]:
    """Bind reserved names to their values again; return those that were bound to something else."""
    rebound = [name for name, value in reserved.items() if names.get(name) is not value]
    for name in rebound:
        names[name] = reserved[name]
    return rebound


MISSING: Any = object()


class Cells:
    """A namespace that cells run in, and the values in it that tools and reserved variables were put over.

    Names that are not in the namespace are looked up in `shown`; `call` calls a host tool.
    """

    def __init__(self, names: dict[str, Any], shown: Any, cap: int, call: Callable[..., Any]) -> None:
        self.names, self.cap, self.call = names, cap, call
        self.answer = AnswerSlot(names, shown)
        self.displays = Displays()
        self.covered: dict[str, list[tuple[Any, bool]]] = {}
        self.reserved: dict[str, Any] = {}
        self.tools: dict[str, Any] = {}
        self.hidden: dict[str, Any] = {}  # names that are no variables while they have these values
        self.marks: dict[str, tuple[int, Any]] = {}
        self.loop: Any = None
        self.shell: Any = None  # IPython's, where cells have its syntax

    def use(self, shell: Any) -> None:
        """Read cells in the syntax of an IPython shell, and show values in the forms that it has for them, too."""
        self.shell = shell
        by_methods, formats = self.displays.bundle, shell.display_formatter.format
        self.displays.bundle = lambda value: by_methods(value) or formats(value, include=RICH)[0]

    def work(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        """Do a job; whatever its code raises is in the report."""
        try:
            try:
                getattr(self, "_job_" + job["t"])(job, report)
            except AnswerGiven:
                pass
            except BaseException as error:
                text = cut("".join(explain(error, self._is_user)), self.cap)
                report["error"] = {"message": one_line(error), "text": text}
            if job["t"] == "exec" and self.answer.given():
                report["answer"] = bounded(self.names[_ANSWER], self.cap)
        except BaseException as error:  # of the text of an error, or of an answer
            report.setdefault("error", {"message": one_line(error), "text": one_line(error) + "\n"})

    def _job_exec(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        code, file = job["code"], job["file"]
        if self.shell is not None:
            with contextlib.suppress(Exception):  # what is wrong with it is told when it is run
                code = self.shell.transform_cell(code)
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        tree = _compile(code, file, "exec", _AWAIT | _ast.PyCF_ONLY_AST, dont_inherit=True)
        last: Any = None  # the expression of which the value is to be shown
        if tree.body and isinstance(tree.body[-1], _ast.Expr) and not code.rstrip().endswith(";"):
            last = tree.body.pop().value
        try:
            if tree.body or last is None:
                self._execute(self.compiled(tree, file, "exec"))
            if last is not None:
                value = self._execute(self.compiled(_ast.Expression(last), file, "eval"))
                if value is not None:
                    self.displays.add(self.displays.bundle(value))
                    report["echo"] = cut(repr(value), self.cap)
        finally:
            self.displays.flush()

    def _job_eval(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        tree = _compile(job["code"], "<expression>", "eval", _ast.PyCF_ONLY_AST, dont_inherit=True)
        report.update(bounded(self._execute(self.compiled(tree, "<expression>", "eval")), self.cap))

    def _job_set(self, job: dict[str, Any], _report: dict[str, Any]) -> None:
        self.put(job["name"], load(job), job.get("reserved", False))

    def _job_give_back(self, job: dict[str, Any], _report: dict[str, Any]) -> None:
        self.uncover(job["name"])

    def _job_tools(self, job: dict[str, Any], _report: dict[str, Any]) -> None:
        for name in set(self.tools) - set(job["tools"]):
            self.uncover(name)
        for name in set(job["tools"]) - set(self.tools):
            self.cover(name)
        self.tools = {name: self._stand_in(name, doc) for name, doc in job["tools"].items()}
        self.names.update(self.tools)
        self.reserved.update(self.tools)

    def _job_new_run(self, _job: dict[str, Any], _report: dict[str, Any]) -> None:
        self.answer.forget()

    def put(self, name: str, value: Any, reserved: bool) -> None:
        """Bind a variable; a reserved one is put over the value that the name has."""
        if reserved:
            self.cover(name)
            self.reserved[name] = value
        else:
            self.reserved.pop(name, None)
        self.names[name] = value

    def cover(self, name: str) -> None:
        """Keep the value that a tool or a reserved variable is put over, and whether it is reserved."""
        self.covered.setdefault(name, []).append((self.names.get(name, MISSING), name in self.reserved))

    def uncover(self, name: str) -> None:
        """Bind a name to the value that was covered last."""
        value, reserved = self.covered[name].pop() if self.covered.get(name) else (MISSING, False)
        self.bind(name, value)
        self.reserved.pop(name, None)
        if reserved:
            self.reserved[name] = value

    def bind(self, name: str, value: Any) -> None:
        """Bind a name as it was: `MISSING` is no value."""
        if value is MISSING:
            self.names.pop(name, None)
        else:
            self.names[name] = value

    def _stand_in(self, name: str, doc: str) -> Callable[..., Any]:
        def tool(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, args, kwargs)

        tool.__name__ = tool.__qualname__ = name
        tool.__doc__ = doc
        tool.__module__ = "__main__"
        return tool

    def _note_names(self, report: dict[str, Any]) -> None:
        """Report the public names, and those that are new or changed, where there are any such."""
        marks: dict[str, tuple[int, Any]] = {}
        for name, value in list(self.names.items()):  # a thread may bind names meanwhile
            public = type(name) is str and name[:1] not in ("", "_") and name not in self.tools and name != _ANSWER
            if public and self.hidden.get(name, MISSING) is not value:
                marks[name] = mark(value)
        if marks != self.marks:
            report["names"] = list(marks)
            report["changed"] = [name for name in marks if marks[name] != self.marks.get(name)]
        self.marks = marks

    def compiled(self, tree: Any, file: str, mode: str) -> types.CodeType:
        """The code of a cell's tree."""
        return _compile(tree, file, mode, _AWAIT, dont_inherit=True)

    def _execute(self, code: types.CodeType) -> Any:
        if not code.co_flags & 0x80:  # inspect.CO_COROUTINE: no top-level await
            return eval(code, self.names)
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        task = self.loop.create_task(eval(code, self.names))
        try:
            return self.loop.run_until_complete(task)
        finally:
            if not task.done():  # interrupted: let it clean up, but not for long
                task.cancel()
                self.loop.run_until_complete(asyncio.wait({task}, timeout=0.2))

    def _is_user(self, file: str) -> bool:
        return file.startswith(("<cell ", "<setup>", "<expression>"))


class Repl(Cells):
    """A persistent namespace, and the jobs that the host asks for."""

    def __init__(self, link: Link, cap: int) -> None:
        self.module = types.ModuleType("__main__")
        super().__init__(self.module.__dict__, vars(builtins), cap, link.call)
        self.link, self.interrupts = link, link.interrupts
        self.names["__builtins__"] = builtins
        # Classes made in cells say that they live in __main__: pickle, typing and dataclasses look there.
        self.worker_module, sys.modules["__main__"] = sys.modules["__main__"], self.module
        builtins.SubCallError, builtins.DepthExceeded = SubCallError, DepthExceeded  # type: ignore[attr-defined]
        sys.meta_path.insert(0, self.displays)  # type: ignore[arg-type]
        builtins.display = self.displays.show  # type: ignore[attr-defined]
        self.folder = os.getcwd()
        sys.breakpointhook = no_debugger
        threading.excepthook = self._thread_failed

    def serve(self) -> None:
        self.link.send({"t": "hello"})
        enclosed = self.link.sock.recvmsg(1, _socket.CMSG_SPACE(4), _CLOSE_ON_EXEC)[1]  # what the host sends first
        self.output = Output(int.from_bytes(enclosed[0][2][:4], sys.byteorder))
        while True:
            job = self.link.next_job()
            report = self.perform(job)
            if os.getpid() != self.link.pid:
                os._exit(0)  # a child that the cell forked fell off the end of the cell
            self.link.send({**report, "t": "done", "id": job["id"]})

    def perform(self, job: dict[str, Any]) -> dict[str, Any]:
        if job["t"] == "ping":
            return {}
        runs_code = job["t"] in ("exec", "eval")
        report: dict[str, Any] = {}
        try:
            if runs_code:
                self.answer.begin(job["code"] if job["t"] == "exec" else "")
                self.output.open_cell()
            self.interrupts.count, self.interrupts.pending, self.interrupts.cell = 0, False, job["id"]
            self.work(job, report)  # an interrupt may strike anywhere in it
        finally:
            if runs_code:
                self.output.close_cell()
            self.interrupts.cell = None
        if runs_code:
            if restored := self._tidy():
                report["restored"] = restored
            self.link.abandon_calls()
        if displays := self.displays.take():
            report["displays"] = displays
        report["interrupts"] = self.interrupts.count
        self._note_names(report)
        return report

    def _job_drop(self, job: dict[str, Any], _report: dict[str, Any]) -> None:
        for name in job["names"]:
            if name not in self.reserved:
                self.names.pop(name, None)

    def _is_user(self, file: str) -> bool:
        return super()._is_user(file) or file.startswith(self.folder + os.sep)

    def _tidy(self) -> list[str]:
        """Undo what the cell did to the REPL's own parts; return the reserved names that it had rebound."""
        restored = restore(self.names, self.reserved)
        self.names["__builtins__"] = builtins
        sys.modules["__main__"] = self.module
        _signal.signal(signal.SIGINT, self.interrupts.on_signal)
        if type(linecache.cache) is not dict:
            linecache.cache = {}
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 200))  # under which our own code fails
        return restored

    def _thread_failed(self, args: Any) -> None:
        if not issubclass(args.exc_type, (SystemExit, HostEnded)):
            name = args.thread.name if args.thread is not None else "?"
            sys.stderr.write(f"Exception in {name}:\n" + "".join(explain(args.exc_value, self._is_user)))


class IPythonRepl(Repl):
    """The REPL with IPython's syntax (`%magic`, `!command`), `display` and rich forms.

    Cells are run by our own code and not by `run_cell`, so that all is the same.
    """

    def __init__(self, link: Link, cap: int) -> None:
        from IPython.core.interactiveshell import InteractiveShell  # pyright: ignore[reportMissingImports]
        from traitlets.config import Config  # pyright: ignore[reportMissingImports]

        config = Config()
        config.HistoryManager.enabled = False
        shell: Any = InteractiveShell.instance(config=config)
        super().__init__(link, cap)
        shell.user_module, shell.user_ns = self.module, self.names  # what `get_ipython()` works on
        shell.builtin_trap.activate()
        builtins.exit = builtins.quit = leave  # type: ignore[assignment]
        shell.system = shell.system_raw  # a terminal of its own would colour what `!command` prints
        shell.display_pub.publish = self.displays.publish
        self.use(shell)


def leave(code: Any = None) -> None:
    """`exit`: the cell ends, not the process."""
    raise SystemExit(code)


def no_input(_prompt: object = "", /) -> str:
    """`input`: nobody is asked."""
    raise EOFError("EOF when reading a line")


def no_debugger(*_args: Any, **_kwargs: Any) -> None:
    """`breakpoint`."""
    raise RuntimeError("breakpoint() does not work here: nobody can type into this REPL")


STAND_INS: dict[str, Any] = {"exit": leave, "quit": leave, "input": no_input, "breakpoint": no_debugger}
"""Built-ins through which a cell that shares its process with others would reach its user, or end it."""

_compile = compile  # a cell may take it from builtins
_AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def load(job: dict[str, Any]) -> Any:
    """The value of a `set` job: in the frame, or in a file (`source`) of the host or the user."""
    form = job["form"]
    if form == "frame":
        return decode(job["value"])
    with open(job["source"], "rb") as f:
        if form == "pickle":  # host to worker only; nothing that a worker wrote is ever unpickled
            import pickle

            return pickle.load(f)
        raw = f.read(job["size"])
    return raw if form == "bytes" else raw.decode("utf-8", "surrogateescape")


# --------------------------------------------------------------------------------------------- process

RECORD = 262_144  # characters of a cell's text that are kept for the record, where the session's own cap is smaller


def tie_to_life_line() -> None:
    """End this process group when the other end of descriptor 0 is closed, even in the middle of a loop in C.

    Takes descriptors 0, 1 and 2 out of reach of what the cells write; the life line itself goes to another one.
    """
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(line, 10, signal.SIGKILL)  # F_SETSIG: this signal, when something happens on it
        fcntl.fcntl(line, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(line, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    else:
        threading.Thread(target=_watch, args=(line,), daemon=True).start()
    poll = select.poll()
    poll.register(line, select.POLLIN)
    if poll.poll(0):
        os._exit(0)  # the host ended meanwhile


def _watch(line: int) -> None:
    """Do the same where the kernel has no such signal; a loop in C may hold this thread up."""
    with contextlib.suppress(OSError):
        os.read(line, 1)
    os.killpg(0, signal.SIGKILL)


def _outlive_as_init() -> None:
    """In a container: let a child be the REPL, since the kernel spares the first process what it does to others."""
    pid = os.fork()
    while pid:
        with contextlib.suppress(ChildProcessError):
            ended, status = os.wait()
            if ended == pid:
                os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def confine(options: dict[str, Any]) -> None:
    """Tie this process to its host, and set the limits of the cells."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    tie_to_life_line()
    _signal.signal(signal.SIGQUIT, _signal.SIG_DFL)
    limit(options.get("limits", {}))
    with contextlib.suppress(Exception):  # Linux: no set-uid program gives a cell more rights than this process has
        import ctypes

        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS


def limit(limits: dict[str, int]) -> None:
    """Set resource limits (the fields of the host's `Limits`) for this process and its children, for good.

    No core files; and when memory runs out, the kernel should take the REPL, not the host or the model.
    """
    import resource

    with contextlib.suppress(OSError, ValueError):  # not Linux, or not allowed
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("500")
    if "processes" in limits:  # the kernel counts all of the user's
        limits = {**limits, "processes": limits["processes"] + (tasks_of_user() or limits.get("others", 1))}
    kinds = {"memory": "RLIMIT_DATA", "processes": "RLIMIT_NPROC", "file_size": "RLIMIT_FSIZE"}
    for name in kinds.keys() & limits:
        number, most = getattr(resource, kinds[name]), limits[name]
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, most))


def tasks_of_user() -> int:
    """Count the processes and threads of this user; 0 where they cannot be seen."""
    count, user = 0, os.getuid()
    with contextlib.suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if os.stat("/proc/" + pid).st_uid == user:
                    count += len(os.listdir("/proc/" + pid + "/task"))
    return count


def serve(options: dict[str, Any]) -> None:
    """Serve the host; never returns."""
    try:
        sys.path += options.get("path", [])
        del sys.argv[1:]
        if os.getpid() == 1:
            _outlive_as_init()
        if "socket" in options:
            sock = _socket.socket(_socket.AF_UNIX)
            sock.connect(options["socket"])
        else:
            sock = _socket.socket(fileno=os.dup(1))
        confine(options)
        make = IPythonRepl if options.get("ipython") else Repl
        if "restricted" in options:
            make = _restricted(**options["restricted"])
        make(Link(sock, Interrupts()), int(options.get("cap", 65536))).serve()
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(70)  # the worker's own code failed


def _restricted(folder: str, imports: list[str]) -> Callable[[Link, int], Repl]:
    """Return the REPL whose cells are restricted; its file lies beside the worker's in `folder`."""
    package = sys.modules["_rlm_loop"] = types.ModuleType("_rlm_loop")
    package.__path__ = [folder]
    sys.modules["_rlm_loop.worker"] = sys.modules["__main__"]
    beside: Any = __import__("_rlm_loop.restricted", fromlist=("",))
    return lambda link, cap: beside.RestrictedRepl(link, cap, imports)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
