"""Files that somebody else left: traces and study folders are read whole or refused, and never waited for."""

from __future__ import annotations

import gzip
import json
import math
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.formats import load_results
from rlm_loop.report import run_page
from rlm_loop.study import StudyError, load_study
from rlm_loop.study.store.archive import packed_traces
from rlm_loop.study.store.folder import Store, claimed
from rlm_loop.study.store.reading import read_fairness_check
from rlm_loop.traces import TraceError, read, received
from rlm_loop.traces.received import file_bytes

LOCK = {"schema": 1, "name": "s", "arms": {}, "models": [], "seeds": [], "tasks": {}}
ROW = {"arm": "a", "model": "m", "suite": "s", "task": "t", "seed": 0, "resolved": True, "trace": None, "error": None}
WRONG: list[dict[str, Any]] = [
    *[{"arm": ["a"]}, {"task": {}}, {"task": 7}, {"seed": [1]}, {"error": 3}, {"cost": "free"}, {"steps": []}],
    *[{"input_tokens": "many"}, {"input_tokens": math.nan}, {"seconds": math.inf}],
]
START = {"event": "run_start", "schema": 5, "run": "r1"}
MADE: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    "name", ["study.json", "results.jsonl", "results.jsonl.gz", "contract.json", "t.jsonl", "page.jsonl"]
)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, made: Callable[[Path], None], name: str) -> None:
    if name != "study.json":
        (tmp_path / "study.json").write_text(json.dumps(LOCK))
    made(tmp_path / name)
    of_folder: Callable[[Path], Any] = read_fairness_check if name == "contract.json" else load_study
    reader = {"t.jsonl": read, "page.jsonl": run_page}.get(name, lambda path: of_folder(path.parent))
    with pytest.raises((StudyError, TraceError), match=name) as caught:
        reader(tmp_path / name)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_nothing_is_written_to_what_is_no_file(tmp_path: Path, made: Callable[[Path], None]) -> None:
    made(tmp_path / "results.jsonl")
    assert not claimed(tmp_path / "results.jsonl")
    with pytest.raises(StudyError, match="cannot write"):
        Store(tmp_path, "s")


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"arm": ' + "9" * 5_000 + "}",
        *[json.dumps(ROW | wrong) for wrong in WRONG],
        json.dumps({k: v for k, v in ROW.items() if k != "error"}),
        "x" * 5_000_000,
    ],
)
def test_a_row_that_cannot_be_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "study.json").write_text(json.dumps(LOCK))
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(ROW)}\n{line}\n{json.dumps(ROW)}\n")
    with pytest.raises(StudyError, match=r"results\.jsonl:2"):
        load_study(tmp_path)


@pytest.mark.parametrize(
    "event",
    [
        {"event": ["run_end"]},
        {"event": "run_end", "node": ["0"]},
        {"event": "run_end", "depth": "x"},
        {"event": "aborted", "run": {}},
        {"event": "message", "hash": "h", "message": 3},
        {"event": "message", "hash": [], "message": {}},
        {"event": "message", "hash": "h", "message": {"role": "user", "spans": [3]}},
        {"event": "request", "base": None, "added": 3, "digest": "d", "settings": "s"},
        {"event": "request", "base": None, "added": [[]], "digest": "d", "settings": "s"},
        {"event": "turn", "at": "yesterday"},
        {"event": "turn", "seconds": 10**400},
        {"event": "turn", "actions": [{"is": "RunCode", "code": "1"}], "observations": []},
    ],
)
def test_an_event_of_other_types_is_a_damaged_line(tmp_path: Path, event: Any) -> None:
    lines = [START, event, {"event": "note", "run": "r1", "turn": 1}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(e) + "\n" for e in lines))
    with pytest.raises(TraceError, match="damaged"):
        read(tmp_path / "t.jsonl")


def test_what_is_packed_is_bounded_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(b"a" * 600) + gzip.compress(b"b" * 400)
    (tmp_path / "f").write_bytes(data)
    assert file_bytes(tmp_path / "f") == b"a" * 600 + b"b" * 400
    for damaged in (data[:-9], b"\x1f\x8bxx"):
        (tmp_path / "f").write_bytes(damaged)
        with pytest.raises(OSError, match="damaged gzip"):
            file_bytes(tmp_path / "f")
    monkeypatch.setattr(received, "_SMALL", 1000)
    bomb = gzip.compress(b"a" * 1_000_000)  # small when packed, and more than the memory when not
    (tmp_path / "t.jsonl").write_bytes(bomb)
    with pytest.raises(TraceError, match="too large"):
        run_page(tmp_path / "t.jsonl")
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("header.json", "{}")
        log.writestr("samples/a_epoch_1.json", "a" * 1_000_000)
    with pytest.raises(StudyError, match="too large"):
        load_results(tmp_path / "log.eval")
    with tarfile.open(tmp_path / "traces.tar.xz", "w:xz") as packed:
        packed.add(tmp_path / "log.eval", "a")
        (tmp_path / "big").write_bytes(b"a" * 1_000_000)
        packed.add(tmp_path / "big", "b")
    with pytest.raises(TraceError, match="holds more than"):
        packed_traces(tmp_path)
    monkeypatch.setattr(received, "LARGEST", 999)
    for name, raw in (("f", data), ("plain", b"a" * 1000)):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(OSError, match="too large"):
            file_bytes(tmp_path / name)
