"""The versions that a run depends on."""

from __future__ import annotations

import functools
from contextlib import suppress

#: The version of this package; the build reads it here.
__version__ = "0.1.0"


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a run depends on, for its trace."""
    import importlib.metadata  # here, since `import rlm_loop` reads this file and needs neither
    import platform

    found = {"python": platform.python_version(), "rlm-loop": __version__}
    for package in ("xllamacpp", "litellm", "pydantic"):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
