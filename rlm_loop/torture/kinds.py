"""The kinds of session that cases can be put to, by name.  A new kind is one line of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.torture.subject import FEATURES, OfSession, Subject, slack

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
        "sees-processes",
        "system-is-writable",
        "runs-as-root",
        "kernel-settings",
        "process-limit-of-the-session",
    ),
    _PROCESS,
)


@dataclass(frozen=True)
class Kind:
    """A kind of session.

    `make` opens one (options: `timeout`, `grace` and those of a case), `features` is what it can be asked for, `gaps`
    the cases that it is known to fail, each with the reason: a gap is run like any other case, and is red.
    `sharing` are the options of a session that many cases use in turn.
    """

    name: str
    make: Callable[..., Any]
    features: frozenset[str] = _ALL
    gaps: Mapping[str, str] = field(default_factory=dict[str, str])
    sharing: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def open(self, *, shared: bool = False, **options: Any) -> Subject:
        """Open a session as a subject of cases; with `shared`, one that many cases use in turn."""
        session = self.make(timeout=PATIENCE * slack(), grace=GRACE, **(self.sharing if shared else {}), **options)
        return OfSession(session, self.features, TIMEOUT, TIMEOUT + GRACE + 0.5)

    def session(self) -> Any:
        """A session as a loop opens one."""
        return self.make(timeout=PATIENCE * slack(), grace=GRACE)


def _launched(launcher: str) -> Callable[..., Any]:
    def make(*, memory: int | None = None, processes: int | None = None, **options: Any) -> Any:
        from rlm_loop.repl import PythonREPL
        from rlm_loop.repl.limits import Limits

        return PythonREPL(launcher=launcher, limits=Limits(memory=memory, processes=processes), **options)

    return make


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
        Kind("kernel", _named("kernel"), features=_ALL - {"limits"}, gaps=NO_ISOLATION),
        Kind("restricted", _named("restricted"), features=frozenset(["set", "reserved", "answer", "echo"])),
    )
}


def kind(name: str) -> Kind:
    """The kind of that name; raises `ValueError` where there is none."""
    if name not in KINDS:
        raise ValueError(f"no kind of session is called {name!r}; there are: {', '.join(KINDS)}")
    return KINDS[name]
