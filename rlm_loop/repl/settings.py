"""The options of a session, and the limits of its process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

_LEAST = {"memory": 32 << 20, "processes": 0, "file_size": 0}


@dataclass(frozen=True)
class Limits:
    """Limits of the process that runs the cells; `None` means not limited.  See setrlimit(2) and `docs/isolation.md`.

    Each is inherited by child processes, which count on their own, except for `processes`.  No cell can raise one.

    - `memory`: bytes of private writable memory (`RLIMIT_DATA`): beyond it a cell gets a `MemoryError`.  Memory that
      is only reserved does not count, which NumPy and PyTorch do by the gigabyte; nor does shared memory.
    - `processes`: child processes and threads at one time (`RLIMIT_NPROC`), besides what the same user runs
      already when the REPL starts.  The kernel exempts root: as root it holds in `hardened` and `sandbox` only.
    - `file_size`: bytes of any one file that is written.

    Raises `ValueError` for a value that makes no sense.
    """

    memory: int | None = None
    processes: int | None = None
    file_size: int | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"{name} must be a whole number >= {least}, or None for no limit, got {value!r}")

    def as_options(self) -> dict[str, int]:
        """The limits that are set, for the worker's options."""
        return {name: value for name, value in asdict(self).items() if value is not None}


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
            if not name or Path(name).is_absolute() or ".." in Path(name).parts:
                raise ValueError(f"file name {name!r} must be relative to the REPL's folder and stay inside it")
