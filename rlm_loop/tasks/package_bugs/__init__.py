"""The suite `package_bugs`: one slip in a real package, judged by the package's tests, without containers."""

from __future__ import annotations

from rlm_loop.tasks.package_bugs.bugs import Bug, Manifest, recorded
from rlm_loop.tasks.package_bugs.sdists import Package, PackageMissing, cached, pull, source_files
from rlm_loop.tasks.package_bugs.suite import package_bugs

__all__ = ["Bug", "Manifest", "Package", "PackageMissing", "cached", "package_bugs", "pull", "recorded", "source_files"]
