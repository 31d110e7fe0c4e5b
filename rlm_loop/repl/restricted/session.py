"""`RestrictedREPL`: cells behind RestrictedPython's guards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import WORKER, Launch, default_python, plain
from rlm_loop.repl.process_session import ProcessSession
from rlm_loop.repl.restricted.modules import ANALYSIS
from rlm_loop.repl.settings import Settings


class RestrictedREPL(ProcessSession):
    """A `PythonREPL` whose cells may say only what RestrictedPython's rules allow.

    **It is a guard rail and no security boundary**: it keeps clumsy code from files, other modules and the network, and
    refuses most ways out, but not all (RestrictedPython itself says that it is not a sandbox;
    `tests/repl/test_restricted.py` lists gaps that are known).  Against anything else use an isolated `PythonREPL`.

    Ordinary analysis code runs.  What does not: `async`, `match`, `except*`, `import *`, `exec` and `eval`, modules
    that are not in `imports`, attributes of frames and code, most double-underscore attributes, and private parts of
    objects that no cell made.

    - `imports`: modules that may be imported, of which cells see only the public names.  Add to the default as in
      `imports=(*ANALYSIS, "numpy", "pandas")`; such a package reads and writes files, and is a way out for who
      looks for one.
    - `setup`: the host's own code, run without guards; the names that it leaves are there for the cells, but modules
      only as far as cells could import them.
    - `settings`: as for `PythonREPL`; `open` works in the working folder only.

    Needs `pip install -e ".[restricted]"`.
    """

    def __init__(self, *, imports: Iterable[str] = ANALYSIS, **settings: Any) -> None:
        if find_spec("RestrictedPython") is None:
            raise ReplError(f"restricted sessions need RestrictedPython: {install_line('restricted')}")
        super().__init__(Settings(**settings), partial(_launched, tuple(imports)), "restricted")


def _launched(imports: tuple[str, ...], options: Mapping[str, Any]) -> Launch:
    restricted = {"folder": str(WORKER.parent), "imports": imports}
    launch = plain(default_python(), json.dumps({**options, "restricted": restricted}))
    return replace(launch, kind="restricted")
