"""Fetch source distributions ahead of time: `python -m rlm_loop.tasks.package_bugs [NAME ...]`, by default all."""

from __future__ import annotations

import sys

from rlm_loop.tasks.package_bugs.sdists import PACKAGES, PackageMissing, pull

for package in PACKAGES:
    if package.name in sys.argv[1:] or len(sys.argv) == 1:
        try:
            print(f"{package.requirement}: {pull(package)}", flush=True)
        except PackageMissing as error:
            sys.exit(f"error: {error}")
