"""The child side of `judge`: runs tests in one process and the solution that they call in another one.

The process that runs the tests never runs a line of the solution.  It forks the other one before it reads the job, so
that no memory of the solution's process ever held the tests or the job's word, and hands it calls; what comes back is
read as plain JSON into plain values (see `pack`).  So nothing that a solution does to its own process (to `assert`, to
builtins, to descriptors, to the objects that it returns) reaches the comparison: it passes by right values only.
Standard library only: it is run by path, apart from the package.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # this folder would let tests and solutions import our files
    sys.path[:] = [p for p in sys.path if p != __file__.rpartition("/")[0]]

import builtins
import contextlib
import json
import linecache
import os
import random
import re
import traceback
from collections.abc import Callable, Iterator, KeysView, Mapping, MappingView
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, BinaryIO, NoReturn

_FRAME = 64 << 20  # bytes of one call or result
_ITEMS = 1_000_000  # of an iterator that is returned
_DEEP = 100  # containers in containers
_NUMBERS = {"Decimal": "decimal", "Fraction": "fractions"}  # by the module, which is imported where it is needed

#: Audit events that no solution of a coding exercise has a reason for: a clear error for accidents.  Against attacks
#: there is the isolation that this process was started in.
_REFUSED = ("socket.", "subprocess.", "os.system", "os.fork", "os.exec", "os.posix_spawn", "os.kill", "os.remove",
            "os.rename", "os.rmdir", "os.chmod", "os.chown", "shutil.", "ctypes.")  # fmt: skip


class NotPlain(BaseException):
    """A test hands the solution what has no plain form: nothing can be said of the solution."""


class Ended(BaseException):
    """The solution's process gave no function, or is gone; the text says which."""


class Opaque:
    """A value of the solution's that has no plain form: equal to nothing."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def pack(value: Any, other: Callable[[Any], Any], deep: int = 0) -> Any:
    """A value as JSON: `[type, content]` by the builtin type that it is or derives from, an iterator as its items.

    What has no such form is what `other` makes of it.
    """

    def of(part: Any) -> Any:
        return pack(part, other, deep + 1)

    if deep > _DEEP:
        return other(value)
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return ["int", hex(value)]  # decimals of a long one are refused by Python, and slow
        case float():
            return ["float", float.hex(value)]
        case complex():
            return ["complex", [float.hex(value.real), float.hex(value.imag)]]
        case bytes() | bytearray():
            return ["bytes", bytes(value).hex()]
        case dict():
            return ["dict", [[of(k), of(v)] for k, v in dict.items(value)]]
        case list() | tuple() | set() | frozenset():
            kind: Any = next(t for t in (list, tuple, set, frozenset) if isinstance(value, t))
            return [kind.__name__, [of(item) for item in kind.__iter__(value)]]
        case range():
            return ["range", [hex(n) for n in (value.start, value.stop, value.step)]]
        case KeysView():
            return ["keys", of(dict.fromkeys(value))]
        case Iterator() | MappingView():
            items: Any = value
            return ["iterator", [of(item) for item in islice(items, _ITEMS)]]
        case _:
            known = type(value).__name__
            module = sys.modules.get(_NUMBERS.get(known, ""))
            exact = module is not None and type(value) is getattr(module, known)
            return [known, str(value)] if exact else other(value)


def _opaque(value: Any) -> Any:
    return ["?", _text(repr, value)]


def _refuse_opaque(value: Any) -> NoReturn:
    raise NotPlain(f"a test hands over {_text(repr, value)[:100]}, which has no plain form")


def unpack(data: Any) -> Any:
    """The value that `pack` made this of; raises `ValueError`, `TypeError` and the like for anything else."""
    if not isinstance(data, list):
        return data if data is None or isinstance(data, bool | str) else _unknown(data)
    kind, content = data
    return _READ.get(kind, _unknown)(content)


def _unknown(content: Any) -> NoReturn:
    raise ValueError("no value has this form")


def _number(kind: str, content: str) -> Any:
    return getattr(import_module(_NUMBERS[kind]), kind)(content)


_READ: dict[str, Callable[[Any], Any]] = {
    "int": lambda c: int(c, 16),
    "float": lambda c: float.fromhex(c),
    "complex": lambda c: complex(*map(float.fromhex, c)),
    "bytes": lambda c: bytes.fromhex(c),
    **{name: partial(_number, name) for name in _NUMBERS},
    "keys": lambda c: unpack(c).keys(),
    "dict": lambda c: {unpack(k): unpack(v) for k, v in c},
    "list": lambda c: [*map(unpack, c)],
    "tuple": lambda c: tuple(map(unpack, c)),
    "set": lambda c: set(map(unpack, c)),
    "frozenset": lambda c: frozenset(map(unpack, c)),
    "range": lambda c: range(*(int(n, 16) for n in c)),
    "iterator": lambda c: iter([*map(unpack, c)]),
    "?": lambda c: Opaque(str(c)),
}


class FramePipe:
    """An end of the line between the two processes: frames of JSON with their length before them."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in: BinaryIO = os.fdopen(reading, "rb")
        self._out = writing

    def send(self, message: Any) -> None:
        """Raises `ValueError` for a message that is too long."""
        data = json.dumps(message).encode()
        if len(data) > _FRAME:
            raise ValueError(f"a value of {len(data):,} bytes is too long to be handed over")
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(self._out, view) :]

    def receive(self) -> Any:
        """Raises `EOFError` where the other one ended, or says what is no frame."""
        size = int.from_bytes(self._in.read(4), "big")
        data = self._in.read(size) if 0 < size <= _FRAME else b""
        if not data or len(data) != size:
            raise EOFError
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise EOFError from None


# The process of the solution.


def _serve(line: FramePipe) -> None:
    """Load the solution, then answer calls of it, for as long as anyone asks."""
    job = line.receive()
    _limit(job["limits"])
    try:
        function, problem = _loaded(job)
        line.send(["missing", problem] if function is None else ["loaded", None])
    except BaseException as error:  # a solution may exit, or raise whatever it likes
        line.send(_told(error))
        return
    while function is not None:
        arguments, named = line.receive()
        try:
            line.send(["returned", pack(function(*unpack(arguments), **unpack(named)), _opaque)])
        except BaseException as error:
            line.send(_told(error))


def _loaded(job: dict[str, Any]) -> tuple[Callable[..., Any] | None, str]:
    """The function, or why no candidate compiles and defines it."""
    entry, chosen = job["entry"], None
    defines = re.compile(rf"^(async\s+def|def|class)\s+{entry}\b|^{entry}\s*(:.*)?=", re.MULTILINE)
    problem = f"no function {entry} in the answer"
    for before, source in job["candidates"]:
        if defines.search(source):
            try:
                chosen = chosen or (compile(before, "<given>", "exec"), compile(source, "<solution>", "exec"))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                problem = _explain(error)
    if chosen is None:
        return None, problem
    if job["importable"]:
        sys.path.insert(0, os.getcwd())
    sys.addaudithook(_refuse)
    random.seed(0)  # the same draws every time
    names: dict[str, Any] = {"__name__": "solution"}
    for part in chosen:
        exec(part, names)
    return names[entry], ""


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"{event} is not allowed here")


def _told(error: BaseException) -> list[Any]:
    """An exception by its name, the nearest builtin one that it derives from, and its text."""
    near = next(t.__name__ for t in type(error).__mro__ if t.__module__ == "builtins")
    return ["raised", [type(error).__name__, near, _text(str, error)]]


# The process of the tests.


class Judging:
    """Asks the process of the solution."""

    def __init__(self, line: FramePipe, process: int) -> None:
        self._line, self._process = line, process

    def ask(self, question: Any) -> Any:
        """Return the value; raises the error of the other process, or `Ended`."""
        try:
            self._line.send(question)
            kind, value = self._line.receive()
        except (EOFError, OSError):
            raise Ended(f"the process ended without a result (exit status {self.end()})") from None
        if kind == "raised":
            raise _made(*map(str, value))
        if kind == "missing":
            raise Ended(str(value))
        return unpack(value)

    def call(self, *arguments: Any, **named: Any) -> Any:
        """Call the solution with copies of the arguments."""
        return self.ask([pack(arguments, _refuse_opaque), pack(named, _refuse_opaque)])

    def end(self) -> int:
        """Kill the process where it is not ending already; its exit status (negative: the signal)."""
        os.kill(self._process, 9)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


def _made(name: str, near: str, text: str) -> BaseException:
    """An exception that is caught, named and spelled as the solution's was."""
    base = getattr(builtins, near, Exception)
    base = base if isinstance(base, type) and issubclass(base, BaseException) else Exception

    def made(name: str, base: Any) -> BaseException:
        return type(name, (base,), {"__init__": _no_arguments, "__str__": lambda _: text})()  # pyright: ignore[reportUnknownLambdaType]

    try:
        return made(name, base)
    except (TypeError, ValueError):  # one that cannot be made of nothing, such as a group
        return made("Exception", Exception)


def _no_arguments(_: BaseException) -> None:
    """In the place of the `__init__` of exceptions that want some."""


def _run(job: Mapping[str, Any], judging: Judging) -> str:
    entry = job["entry"]
    names: dict[str, Any] = {"__name__": "solution"}
    exec(compile(job["given"], "<given>", "exec"), names)
    judging.ask({name: job[name] for name in ("candidates", "entry", "importable", "limits")})
    linecache.cache["<tests>"] = (len(job["tests"]), None, job["tests"].splitlines(True), "<tests>")
    random.seed(0)  # some tests draw their cases: the same ones every time
    names[entry] = judging.call
    exec(compile(job["tests"], "<tests>", "exec"), names)
    names["check"](names[entry])
    return ""


def main() -> None:
    there, here = os.pipe(), os.pipe()
    process = os.fork()  # before the job is read
    nothing = os.open(os.devnull, os.O_RDWR)
    if not process:
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.close(there[1])
        os.close(here[0])
        with contextlib.suppress(EOFError, OSError):
            _prctl(1, 9)  # PR_SET_PDEATHSIG
            _serve(FramePipe(there[0], here[1]))
        os._exit(0)
    os.close(there[0])
    os.close(here[1])
    judging = Judging(FramePipe(here[0], there[1]), process)
    _prctl(4, 0)  # PR_SET_DUMPABLE: the other one, of the same user, can neither read nor write this one's memory
    job: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    with contextlib.suppress(OSError):
        os.ftruncate(0, 0)  # a sandbox's first process has it open as well, and the job's word is in it
    report = os.dup(1)
    for descriptor in (0, 1, 2):  # prints of the tests are neither shown nor mixed with the report
        os.dup2(nothing, descriptor)
    os.write(report, f"{job['word']}\n".encode())  # from here on it is the solution that is to blame
    _limit(job["limits"])
    fault = ""
    try:
        reason = _run(job, judging)
    except NotPlain as error:
        reason, fault = "", str(error)
    except Ended as error:
        reason = str(error)
    except BaseException as error:
        reason = _explain(error)
    os.write(report, json.dumps({"word": job["word"], "reason": reason[:500], "fault": fault}).encode() + b"\n")
    os._exit(0)


def _prctl(option: int, value: int) -> None:
    """Linux only."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _limit(limits: Mapping[str, int]) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for name, value in limits.items():
        with contextlib.suppress(ValueError, OSError, AttributeError):  # macOS has no limit of address space
            hard = resource.getrlimit(getattr(resource, name))[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(getattr(resource, name), (value, value))


def _explain(error: BaseException) -> str:
    """Return a line: the exception, and the line of the tests that met it."""
    text = " ".join(f"{type(error).__name__}: {_text(str, error)}".split()).removesuffix(":")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "<tests>"]
    return f"{text} at: {frames[-1].line}" if frames else text


def _text(spell: Callable[[Any], str], value: Any) -> str:
    try:
        return str(spell(value))[:500]
    except Exception:  # an object whose own text raises
        return ""


if __name__ == "__main__":
    main()
