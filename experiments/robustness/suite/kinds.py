"""The kinds of session that cases can be put to, by name.  A new kind is one line of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.robustness.suite.subject import FEATURES, OfSession, Subject, slack

TIMEOUT, GRACE = 0.5, 0.5
"""Seconds that an endless cell is given, and that it has to stop: small, since there are many of them."""

PATIENCE = 30.0
"""Seconds that any other cell may take: large, since the machine may be busy."""

_ALL = frozenset(FEATURES)
_PROCESS = "runs with the user's rights: it protects from crashes and endless loops, not from reading or reaching out"

#: Cases that a session without isolation cannot stand, and why.  They stay in the matrix, red.
NO_ISOLATION: Mapping[str, str] = dict.fromkeys(
    (
        "environment-of-ancestors",
        "memory-of-the-host",
        "home-folder",
        "link-out-of-the-folder",
        "dots-out-of-the-folder",
        "file-of-another-folder",
        "child-reads-home",
        "write-to-home",
        "write-outside",
        "write-through-a-link",
        "hard-link",
        "new-file-outside",
        "remove-outside",
        "tcp",
        "udp",
        "unix-socket",
        "tcp-of-a-child",
        "signal-a-process",
        "limits-of-another-process",
        "priority-of-another-process",
        "processors-of-another-process",
        "attributes-of-a-file",
        "owner-of-a-file",
        "virtual-machines-host",
        "sees-processes",
        "system-is-writable",
        "runs-as-root",
        "kernel-settings",
        "process-limit-of-the-session",
    ),
    _PROCESS,
)


_HOST_IS_PARENT = "the parent of a kernel is the host itself: there is no process between them"
_IN_C = "runs in the host's process, where a C function that looks for no signal cannot be stopped"
_SWALLOWED = "runs in the host's process, where a context manager may swallow every stop"
_RULES = "RestrictedPython's rules, or the list of modules that may be imported, do not allow the code"

_DEAF = "breaks what the kernel's own code needs: it takes no request any more, until the next cell's time limit"
_ZMQ = "can break the kernel's own ZeroMQ connections: it is deaf then, until the next cell's time limit (not always)"
_LEFT_BY_A_CRASH = "a crashed kernel leaves processes that cells had moved into a session of their own"

_CHILD_ONLY = "the interrupt goes to the kernel's group: the child ends by it, and the cell goes on as if it had ended"

KERNEL_GAPS: Mapping[str, str] = {
    **NO_ISOLATION,
    "child-floods": _CHILD_ONLY,
    **dict.fromkeys(("import-removed", "modules-cleared", "json-broken", "ast-broken", "alarm-handler-left"), _DEAF),
    **dict.fromkeys(
        (*(f"forged-frame-{n}" for n in range(1, 8)), "forged-junk", "forged-half-frame", "hangs-up"), _ZMQ
    ),
    **dict.fromkeys(("daemon-and-death", "host-killed-with-a-daemon"), _LEFT_BY_A_CRASH),
    **dict.fromkeys(("kill-its-parent", "stops-its-parent"), _HOST_IS_PARENT),
}

RESTRICTED_GAPS: Mapping[str, str] = {
    **dict.fromkeys(
        ("sum-of-a-range", "deque-of-repeat", "all-of-repeat", "max-of-cycle", "membership", "key-derivation"), _IN_C
    ),
    "suppress-everything": _SWALLOWED,
    **dict.fromkeys(
        (
            "flood-on-stderr",
            "both-streams-in-order",
            "threads-print-at-once",
            "answer-module",
            "answer-decimal-snan",
            "pickle-own-class",
            "walrus-and-match",
            "star-import",
            "threads-in-a-cell",
            "shell-block",
        ),
        _RULES,
    ),
}


@dataclass(frozen=True)
class Kind:
    """A kind of session.

    `make` opens one (options: `timeout`, `grace` and those of a case), `features` is what it can be asked for, `gaps`
    the cases that it is known to fail, each with the reason: a gap is run like any other case, and is red.
    `sharing` are the options of a session that many cases use in turn, `refusals` the words with which its rules
    refuse a cell.
    """

    name: str
    make: Callable[..., Any]
    features: frozenset[str] = _ALL
    gaps: Mapping[str, str] = field(default_factory=dict[str, str])
    sharing: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refusals: tuple[str, ...] = ()

    def open(self, *, shared: bool = False, **options: Any) -> Subject:
        """Open a session as a subject of cases; with `shared`, one that many cases use in turn."""
        session = self.make(timeout=PATIENCE * slack(), grace=GRACE, **(self.sharing if shared else {}), **options)
        return OfSession(session, self.features, TIMEOUT, TIMEOUT + GRACE + 0.5, self.refusals)

    def session(self) -> Any:
        """A session as a loop opens one."""
        return self.make(timeout=PATIENCE * slack(), grace=GRACE)


IMAGE = "localhost/rlm-loop-robustness-python"
"""The image for the kind `container`; `tests/repl/python_image.sh` makes one of this system's own Python."""


def _limited(make: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the options of a case for limits to a session as its `limits`."""

    def limited(*, memory: int | None = None, processes: int | None = None, **options: Any) -> Any:
        from rlm_loop.repl.settings import Limits

        return make(limits=Limits(memory=memory, processes=processes), **options)

    return limited


def _launched(launcher: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        from rlm_loop.repl import PythonREPL

        return PythonREPL(launcher=launcher, **options)

    return _limited(make)


def _contained(**options: Any) -> Any:
    from rlm_loop.repl import PythonREPL
    from rlm_loop.repl.isolation.container import Container

    return PythonREPL(launcher=Container(IMAGE), **options)


def _named(name: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        from rlm_loop.repl import open_repl

        return open_repl(name, **options)

    return make


#: After a crash a session runs its earlier cells again; one that many cases share must not do that to all of theirs.
_NO_REBUILD = {"rebuild": False}

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("plain", _launched("plain"), gaps=NO_ISOLATION, sharing=_NO_REBUILD),
        Kind("hardened", _launched("hardened"), sharing=_NO_REBUILD),
        Kind("sandbox", _launched("sandbox"), sharing=_NO_REBUILD),
        Kind("auto", _launched("auto"), sharing=_NO_REBUILD),
        Kind("container", _limited(_contained), sharing=_NO_REBUILD),
        Kind("kernel", _limited(_named("kernel")), gaps=KERNEL_GAPS, sharing=_NO_REBUILD),
        Kind(
            "restricted",
            _named("restricted"),
            features=_ALL - {"await", "process", "limits"},
            gaps=RESTRICTED_GAPS,
            refusals=("in a restricted session", "cannot be imported here"),
        ),
    )
}


def kind(name: str) -> Kind:
    """The kind of that name; raises `ValueError` where there is none."""
    if name not in KINDS:
        raise ValueError(f"no kind of session is called {name!r}; there are: {', '.join(KINDS)}")
    return KINDS[name]
