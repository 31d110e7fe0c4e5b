"""The REPL: a persistent Python namespace in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_loop.repl.base import CellError, CellResult, EvaluationFailed, ReplError, ReplTool, Session, SetupFailed

if TYPE_CHECKING:
    from rlm_loop.repl.contexts.context import describe_context
    from rlm_loop.repl.contexts.on_disk import ContextError, ContextFile, context_fingerprint
    from rlm_loop.repl.host.launch import Launch
    from rlm_loop.repl.in_process.attached import NotebookREPL
    from rlm_loop.repl.isolation.container import Container
    from rlm_loop.repl.isolation.launchers import Hardened, Sandbox
    from rlm_loop.repl.session import KernelREPL, PythonREPL, RestrictedREPL
    from rlm_loop.repl.settings import Limits

KINDS = ("auto", "subprocess", "plain", "hardened", "sandbox", "container", "kernel", "restricted", "notebook")
"""The kinds of session that `open_repl` knows.  See `docs/isolation.md`.

`auto` and `subprocess` are a process of its own, isolated as far as this machine can; `plain` (not at all), `hardened`
and `sandbox` the same with that launcher, `container` in a container made from `image=` (`docs/isolation.md`).
"""


def open_repl(kind: str = "auto", **options: Any) -> Session:
    """A session of a kind; `options` are those of its class (`PythonREPL`, `KernelREPL`, `RestrictedREPL`,
    `NotebookREPL`).  Raises `ValueError` for a kind that is not there, `ReplError` for one that cannot be had here.
    """
    if kind not in KINDS:
        raise ValueError(f"no REPL of kind {kind!r}; there are: {', '.join(KINDS)}")
    if kind in _CLASSES:
        return __getattr__(_CLASSES[kind])(**options)
    if kind == "container":
        if "image" not in options:
            raise ValueError('a container is made from an image that is there: give image="python:3.12" or another')
        own = {name: options.pop(name) for name in ("image", "engine", "read", "temporary") if name in options}
        options.setdefault("launcher", __getattr__("Container")(**own))
    if kind in ("plain", "hardened", "sandbox"):
        options.setdefault("launcher", kind)
    return __getattr__("PythonREPL")(**options)


_CLASSES = {"kernel": "KernelREPL", "restricted": "RestrictedREPL", "notebook": "NotebookREPL"}


def __getattr__(name: str) -> Any:
    """Sessions are imported when first asked for: `import rlm_loop` starts no process and needs none of it."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rlm_loop.repl.{home}"), name)


_HOME = {
    **dict.fromkeys(("ContextError", "ContextFile"), "contexts.on_disk"),
    "describe_context": "contexts.context",
    "context_fingerprint": "contexts.on_disk",
    "Launch": "host.launch",
    **dict.fromkeys(("KernelREPL", "PythonREPL", "RestrictedREPL"), "session"),
    "Limits": "settings",
    "NotebookREPL": "in_process.attached",
    "Container": "isolation.container",
    **dict.fromkeys(("Hardened", "Sandbox"), "isolation.launchers"),
}


__all__ = [
    "KINDS",
    "CellError",
    "CellResult",
    "Container",
    "ContextError",
    "ContextFile",
    "EvaluationFailed",
    "Hardened",
]
__all__ += ["KernelREPL", "Launch", "Limits", "NotebookREPL", "PythonREPL", "ReplError", "ReplTool", "RestrictedREPL"]
__all__ += ["Sandbox", "Session", "SetupFailed", "context_fingerprint", "describe_context", "open_repl"]
