"""Members of a zip archive, also those that zstd packed, which Python reads from 3.14 on only."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from types import TracebackType

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.traces.received import LARGEST

_ZSTD = 93
_HEADER = 30  # bytes of a member's header before its name


class Zipped:
    """An archive opened for reading; raises `StudyError` where it is cut off or damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise StudyError(f"cannot read {path}: {error.strerror}") from error
        try:
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            self._file.close()
            raise StudyError(
                f"{path} is cut off or damaged ({error}); copy it again, or run its evaluation again"
            ) from None
        self.names = self._zip.namelist()

    def read(self, name: str) -> bytes:
        """A member.  Raises `StudyError` where it is damaged, or larger than `LARGEST`."""
        about = self._zip.getinfo(name)
        if about.file_size > LARGEST:
            raise StudyError(f"{self.path}: {name} is too large to be read whole")
        try:
            if about.compress_type == _ZSTD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
                return self._zstd(about)
            return self._zip.read(name)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise StudyError(f"{self.path}: {name} is damaged ({error})") from None

    def _zstd(self, about: zipfile.ZipInfo) -> bytes:
        try:
            import zstandard
        except ImportError:
            raise StudyError(f"{self.path} is packed with zstd; to read it: {install_line('studies')}") from None
        self._file.seek(about.header_offset)
        head = self._file.read(_HEADER)
        self._file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), io.SEEK_CUR)
        packed = io.BytesIO(self._file.read(about.compress_size))
        try:
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
                data = stream.read(about.file_size + 1)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if len(data) != about.file_size or zlib.crc32(data) != about.CRC:
            raise ValueError("it is not what was packed")
        return data

    def __enter__(self) -> Zipped:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._zip.close()
        self._file.close()
