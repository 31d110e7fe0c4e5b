"""The traces of a packed study one by one, without unpacking the rest."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from rlm_loop.study.store.archive import read_packed
from rlm_loop.traces.trace import TraceError


class Packed:
    """An archive of traces.  Of a plain tar file only what is asked for is read; a compressed one is held in memory."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive

    def read(self, name: str) -> bytes | None:
        """The trace of that name; `None` where there is none.  Raises `TraceError` for a damaged archive."""
        if self._archive.suffix != ".tar":
            return self._unpacked.get(name)
        place = self._places.get(name)
        if place is None:
            return None
        with self._archive.open("rb") as file:
            file.seek(place[0])
            return file.read(place[1])

    @cached_property
    def _places(self) -> Mapping[str, tuple[int, int]]:
        """Where each trace begins in the archive, and its size in bytes."""
        try:
            with tarfile.open(self._archive, "r:") as tar:
                return {member.name: (member.offset_data, member.size) for member in tar if member.isfile()}
        except (OSError, tarfile.TarError, EOFError) as error:
            raise TraceError(f"cannot read the archive {self._archive}: {error}") from error

    @cached_property
    def _unpacked(self) -> Mapping[str, bytes]:
        return read_packed(self._archive.parent)
