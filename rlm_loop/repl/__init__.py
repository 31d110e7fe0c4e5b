"""The REPL: a persistent Python namespace in a process of its own."""

from __future__ import annotations

from typing import Any

from rlm_loop.repl.base import CellError, CellResult, EvaluationFailed, ReplError, SetupFailed
from rlm_loop.repl.contexts.context import describe_context
from rlm_loop.repl.contexts.on_disk import ContextError, ContextFile, context_fingerprint
from rlm_loop.repl.host.launch import Launch
from rlm_loop.repl.in_process.attached import NotebookREPL
from rlm_loop.repl.isolation.container import Container
from rlm_loop.repl.isolation.launchers import Hardened, Sandbox
from rlm_loop.repl.session import KernelREPL, PythonREPL, ReplTool, RestrictedREPL, Session
from rlm_loop.repl.settings import Limits

__all__ = ["KINDS", "CellError", "CellResult", "Container", "ContextError", "ContextFile", "EvaluationFailed"]
__all__ += ["Hardened", "KernelREPL", "Launch", "Limits", "NotebookREPL", "PythonREPL", "ReplError", "ReplTool"]
__all__ += ["RestrictedREPL", "Sandbox", "Session", "SetupFailed", "context_fingerprint", "describe_context"]
__all__ += ["open_repl"]

KINDS = ("auto", "subprocess", "plain", "hardened", "sandbox", "container", "kernel", "restricted", "notebook")
"""The kinds of session that `open_repl` knows.  See `docs/isolation.md`.

`auto` and `subprocess` are a process of its own, isolated as far as this machine can; `plain` (not at all), `hardened`
and `sandbox` the same with that launcher, `container` in a container made from `image=`.
"""


def open_repl(kind: str = "auto", **options: Any) -> Session:
    """A session of a kind; `options` are those of its class (`PythonREPL`, `KernelREPL`, `RestrictedREPL`,
    `NotebookREPL`).  Raises `ValueError` for a kind that is not there, `ReplError` for one that cannot be had here.
    """
    if kind not in KINDS:
        raise ValueError(f"no REPL of kind {kind!r}; there are: {', '.join(KINDS)}")
    if kind == "container":
        own = {name: options.pop(name) for name in ("image", "engine", "read") if name in options}
        if "image" not in own:
            raise ValueError('a container is made from an image that is there: give image="python:3.12" or another')
        options["launcher"] = Container(**own)
    elif kind in ("plain", "hardened", "sandbox"):
        options["launcher"] = kind
    classes = {"kernel": KernelREPL, "restricted": RestrictedREPL, "notebook": NotebookREPL}
    return classes.get(kind, PythonREPL)(**options)
