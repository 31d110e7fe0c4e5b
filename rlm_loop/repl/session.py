"""`PythonREPL`: a persistent Python namespace in a process of its own, seen from the host."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.repl.host.launch import Launch, Launcher, default_python
from rlm_loop.repl.isolation.kinds import launcher_named
from rlm_loop.repl.process_session import ProcessSession
from rlm_loop.repl.settings import Limits, Settings


class PythonREPL(ProcessSession):
    """A `Session` whose cells run in a child process: it can be interrupted, killed and replaced.

    It starts at first use and ends with `close`, with the `with` block, with the host, or when collected.

    - `cwd`: working folder of the cells; default a private one, removed at the end.  `files` are written there.
    - `setup`: code run before the first cell, and again after a restart; an error in it raises `SetupFailed`.
    - `timeout`: seconds of a cell's own time, host tools excluded; `grace`: seconds that an interrupted cell
      has to stop before it is killed.  `run` returns within their sum plus half a second.
    - `output_cap`: characters of a cell's output that are kept, head and tail.
    - `python`: the interpreter of the cells; `clock`: a clock in seconds.
    - `launcher`: how it is started and isolated: `sandbox`, `hardened`, `plain`, or a launcher.  Default `auto`: the
      strongest that works here, in that order, with a warning where it is `plain`; `isolation` says which it was.
      `limits`: what the cells may take of the machine.  See `docs/isolation.md`.
    - `rebuild`: after a kill or crash, get the variables back at the next use, by running the earlier cells again
      with the recorded results of their host tools.  That takes at most the time limit of the call that needs
      them, besides its own; cells that were stopped are never run again.  What cells did elsewhere (files,
      network) happens again, too: switch it off where that matters, and all variables are lost.

    It protects the host from crashes, endless loops and a polluted namespace, and isolated also its files, its network
    and its processes.  With the `plain` launcher it is no sandbox: cells may read and write what the user may.
    """

    def __init__(
        self,
        *,
        cwd: Path | str | None = None,
        files: Mapping[str, str | bytes] | None = None,
        setup: str = "",
        timeout: float = 60.0,
        grace: float = 2.0,
        output_cap: int = 65_536,
        python: str | None = None,
        launcher: Launcher | str = "auto",
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        rebuild: bool = True,
    ) -> None:
        settings = Settings(cwd, files or {}, setup, timeout, grace, output_cap, limits or Limits(), clock, rebuild)
        launcher = launcher_named(launcher)
        kind = str(getattr(launcher, "kind", "custom"))
        super().__init__(settings, partial(_launched, launcher, python or default_python()), kind)


def _launched(launcher: Launcher, python: str, options: Mapping[str, Any]) -> Launch:
    return launcher(python, json.dumps(options))
