"""The REPL inside a Jupyter kernel: the worker's own, with the syntax and displays of IPython.

The kernel imports this file and `worker.py` by their folder, not the package (see `_BEGIN` in `session.py`): it may run
another Python, 3.8 or newer, with none of our dependencies.  Hence the relative import and the old syntax.
"""

from __future__ import annotations

import builtins
import os
import sys

from . import worker
from .worker import RICH, Displays, Link, Repl, leave, no_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KernelRepl(Repl):
    """The REPL of a kernel: cells are run by the worker's own code and not by `run_cell`, so that all is the same.

    IPython supplies its syntax (`%magic`, `!command`), `display` and rich forms.
    """

    def __init__(self, shell: Any, link: Link, cap: int) -> None:
        super().__init__(link, cap)
        self.shell = shell
        shell.user_module, shell.user_ns = self.module, self.names  # what magics and `get_ipython()` work on
        shell.system = shell.system_raw  # `!command` writes to the cell's pipe; a terminal of its own would colour it
        shell.display_pub.publish = self.displays.publish
        show_as_ipython(shell, self.displays)

    def perform(self, job: dict[str, Any]) -> dict[str, Any]:
        # IPython hides or replaces these while it runs a request
        builtins.exit, builtins.quit, builtins.input = leave, leave, no_input  # type: ignore[assignment]
        return super().perform(job)

    def _job_exec(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        super()._job_exec({**job, "code": as_python(self.shell, job["code"])}, report)


def show_as_ipython(shell: Any, displays: Displays) -> None:
    """Show values in the forms that IPython has for them, too."""
    by_methods, formats = displays.bundle, shell.display_formatter.format
    displays.bundle = lambda value: by_methods(value) or formats(value, include=RICH)[0]


def as_python(shell: Any, code: str) -> str:
    """Return a cell in IPython's syntax as Python."""
    try:
        return shell.transform_cell(code)
    except Exception:  # what is wrong with it is told when it is run
        return code


def serve(options: dict[str, Any]) -> None:
    """Take over the kernel's namespace and main thread; never returns."""
    from IPython.core.getipython import get_ipython  # pyright: ignore[reportMissingImports]

    shell = get_ipython()
    # As in the worker: files of the working folder can be imported, but never hide the library's.
    sys.path[:] = [p for p in sys.path if p not in ("", os.getcwd())]
    worker.serve(options, lambda link, cap: KernelRepl(shell, link, cap))
