"""The kinds of isolation by name: what each protects from, which of them work here, and which to take."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from rlm_loop.repl.host.launch import Launch, Launcher, plain
from rlm_loop.repl.isolation.hardened import Hardened
from rlm_loop.repl.isolation.ordinary_user import RootFolder
from rlm_loop.repl.isolation.sandbox import Sandbox


@dataclass(frozen=True)
class Strongest:
    """A launcher: the first of `kinds` that works here, else `plain` with a warning.

    A working folder of root's, where the host is root, gets no sandbox: it is `hardened` at best.
    """

    kinds: tuple[Sandbox | Hardened, ...] = (Sandbox(), Hardened())
    kind = "auto"

    def __call__(self, python: str, options: str) -> Launch:
        for launcher in self.kinds:
            if not launcher.problem(python):
                try:
                    return launcher(python, options)
                except RootFolder:
                    continue
        warnings.warn(
            "cells are not isolated from this machine: `rlm-loop doctor` says what is missing and how to get it",
            RuntimeWarning,
            stacklevel=2,
        )
        return plain(python, options)


LAUNCHERS: Mapping[str, Launcher] = {
    "auto": Strongest(),
    "plain": plain,
    "hardened": Hardened(),
    "sandbox": Sandbox(),
}
"""The launchers that have a name; a container needs an image, so it has none."""

_ISOLATED = {"plain": "no", "hardened": "yes", "sandbox": "yes", "container": "yes"}

PROTECTION: Mapping[str, Mapping[str, str]] = {
    "crashes, endless loops": {**_ISOLATED, "plain": "yes"},
    "reading the environment": {**_ISOLATED, "plain": "partly"},
    "reading files": _ISOLATED,
    "writing files": _ISOLATED,
    "network": _ISOLATED,
    "sockets of services": _ISOLATED,
    "seeing processes": _ISOLATED,
    "signals to processes": {**_ISOLATED, "hardened": "Linux 6.12+"},
    "taking all memory": dict.fromkeys(_ISOLATED, "by limits"),
    "bugs of the kernel": {**dict.fromkeys(_ISOLATED, "fewer calls"), "plain": "no"},
}
"""The dangers that each kind protects this machine from; `docs/isolation.md` says how, and what is left open."""


_STRENGTH = {"hardened": 1, "sandbox": 2, "container": 2}


def weaker(kind: str, than: str) -> bool:
    """Return True if one isolation keeps less from this machine than another; one that is not known keeps nothing."""
    return _STRENGTH.get(kind, 0) < _STRENGTH.get(than, 0)


def launcher_named(launcher: Launcher | str) -> Launcher:
    """The launcher of a name in `LAUNCHERS`, or the one given.  Raises `ValueError` for another name."""
    if not isinstance(launcher, str):
        return launcher
    if launcher == "container":
        raise ValueError("a container needs an image: launcher=rlm_loop.repl.isolation.container.Container('IMAGE')")
    if launcher not in LAUNCHERS:
        raise ValueError(f"no launcher is called {launcher!r}; there are: {', '.join(LAUNCHERS)}")
    return LAUNCHERS[launcher]
