"""The REPL with IPython in it: the worker's own, with the syntax and displays of IPython.

The process imports this file and `worker.py` by their folder, not the package: it may be another Python, 3.8 or newer,
with none of our dependencies.  Hence the relative import and the old syntax.
"""

from __future__ import annotations

import builtins

from .worker import RICH, Displays, Link, Repl, leave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KernelRepl(Repl):
    """The REPL with IPython: cells are run by the worker's own code and not by `run_cell`, so that all is the same.

    IPython supplies its syntax (`%magic`, `!command`), `display` and rich forms.
    """

    def __init__(self, link: Link, cap: int) -> None:
        from IPython.core.interactiveshell import InteractiveShell  # pyright: ignore[reportMissingImports]
        from traitlets.config import Config  # pyright: ignore[reportMissingImports]

        config = Config()
        config.HistoryManager.enabled = False
        self.shell: Any = InteractiveShell.instance(config=config)
        super().__init__(link, cap)
        self.shell.user_module, self.shell.user_ns = self.module, self.names  # what `get_ipython()` works on
        self.shell.builtin_trap.activate()
        builtins.exit = builtins.quit = leave  # type: ignore[assignment]
        self.shell.system = self.shell.system_raw  # a terminal of its own would colour what `!command` prints
        self.shell.display_pub.publish = self.displays.publish
        show_as_ipython(self.shell, self.displays)

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


REPL = KernelRepl
