"""What a session is made with, whatever starts its process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_loop.repl.host.session_resources import check_inside
from rlm_loop.repl.limits import REPEAT, Limits


@dataclass(frozen=True)
class Settings:
    """The options of a session (see `PythonREPL`); raises `ValueError` for those that make no sense."""

    cwd: Path | str | None = None
    files: Mapping[str, str | bytes] = field(default_factory=dict[str, str | bytes])
    setup: str = ""
    timeout: float = 60.0
    grace: float = 2.0
    output_cap: int = 65_536
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    rebuild: bool = True

    def __post_init__(self) -> None:
        if not self.timeout > 0 or not self.grace >= 0 or self.output_cap < 1:
            raise ValueError("timeout and output_cap must be positive, grace must not be negative")
        object.__setattr__(self, "files", dict(self.files))  # the caller's own may change
        for name in self.files:
            check_inside(name)

    def worker_options(self, cwd: Path, home: Path) -> dict[str, Any]:
        """What the worker is told of them, given the working folder and the session's private one."""
        options: dict[str, Any] = {"cap": self.output_cap, "path": [str(cwd)], "home": str(home)}
        # Half of the grace time for an import to end: one cut short leaves a half-made package for all later cells.
        spare = min(8, int(0.5 * self.grace / REPEAT))
        return {**options, "limits": self.limits.as_options(), "spare": spare}

    def again(self, cwd: Path | str | None) -> dict[str, Any]:
        """The same options with another working folder, by name."""
        return {**vars(self), "cwd": cwd}
