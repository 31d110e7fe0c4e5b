"""The versions that a run depends on."""

from __future__ import annotations

import functools
import importlib.metadata
import platform

from rlm_loop import __version__


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a run depends on, for its trace."""
    found = {"python": platform.python_version(), "rlm-loop": __version__}
    for package in ("xllamacpp", "litellm", "urllib3", "pydantic"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
