"""A build backend that builds nothing: it tells pip the name and version that pip was asked for.

`pip download` of a source distribution asks the package's build backend for metadata, which would fetch build tools
and run the package's code.  Put in the place of the usual backends (see `sdists`), this one answers instead.
It runs in a process of pip's and must stand alone: standard library only.
"""

import os
import sys
from pathlib import Path


def get_requires_for_build_wheel(config_settings=None):  # pyright: ignore
    """No build tools are needed."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):  # pyright: ignore
    """Write the least that pip accepts as metadata, and return its folder's name (PEP 517)."""
    name, version = os.environ["RLM_LOOP_SDIST"].split("==")
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    target = Path(metadata_directory, folder)
    target.mkdir()
    (target / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    return folder


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # pyright: ignore
    """Nothing is ever built with this backend."""
    raise RuntimeError("rlm_loop only downloads source distributions, it does not build them")


#: What pip asks for where a package names no backend: `setuptools.build_meta:__legacy__`.
__legacy__ = sys.modules[__name__]
