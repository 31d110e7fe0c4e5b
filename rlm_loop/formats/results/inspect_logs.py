"""Logs of Inspect: `.eval` archives and `.json` files, one evaluation of one task with one model each.

Read without `inspect_ai`, as the format is JSON in a zip: `header.json`, and `samples/ID_epoch_N.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.formats.results.source import ReadOptions, Source, parsed, read_bytes
from rlm_loop.formats.results.zipped import Zipped
from rlm_loop.study.compare.columns import as_number, as_resolved, make_row
from rlm_loop.study.errors import StudyError
from rlm_loop.study.statistics.descriptive import total
from rlm_loop.study.store.rows import Row

#: The schema of logs that is read: that of `inspect_ai` from 2024 on.
SCHEMA = 2
_LETTERS = {"C": True, "I": False, "N": False, "P": 0.5}

Sample = dict[str, Any]


def is_inspect(value: object) -> bool:
    """Whether the value of a JSON file is a log."""
    return isinstance(value, dict) and {"version", "status", "eval"} <= set(value)


def read_inspect(path: Path, reading: ReadOptions) -> Source:
    """The samples of a log, one row for each sample and epoch; the arm is the model, the suite the task.

    A sample that ended with an error, or that nothing scored, is not judged.  Token counts include what was read from
    and written to a cache, which Inspect's do not.  Raises `StudyError` for a log of another schema, for one that is
    cut off, for a score that is neither right nor wrong without a threshold, and for an id that is there twice.
    """
    head, samples = _opened(path)
    version = head.get("version")
    if version != SCHEMA:
        raise StudyError(f"{path} is a log of schema {version}; this version reads schema {SCHEMA}")
    about: dict[str, Any] = head.get("eval") or {}
    suite, model = str(about.get("task") or ""), str(about.get("model") or "")
    rows: list[Row] = []
    seen: set[tuple[str, int | str]] = set()
    inputs: dict[tuple[str, str], str] = {}
    failed, scorers, score = 0, dict[str, None](), reading.score
    for sample in samples:
        row, failure = _row(sample, suite, model, reading, score, path)
        if (row["task"], row["seed"]) in seen:
            raise StudyError(f"{path}: sample {row['task']!r}, epoch {row['seed']}, is there twice")
        seen.add((row["task"], row["seed"]))
        names = list(_values(sample))
        scorers.update(dict.fromkeys(names))
        score = score or next(iter(names), None)
        rows.append(row)
        failed += failure
        inputs[suite, row["task"]] = str(sample.get("input"))
    if not rows:
        raise StudyError(f"{path} holds no samples; was it written without them?")
    if scorers and all(r["resolved"] is None for r in rows) and score not in scorers:
        raise StudyError(f"{path} has no score {score!r}; it has {', '.join(scorers)}")
    notes = _notes(path, head, rows, failed, score, list(scorers))
    return Source(path, "Inspect log", rows, notes, inputs)


def _is_archive(path: Path) -> bool:
    return path.suffix == ".eval"


def _opened(path: Path) -> tuple[dict[str, Any], Iterable[Sample]]:
    """What the log says of itself, and its samples."""
    if not _is_archive(path):
        whole = parsed(read_bytes(path), path)
        return whole, list(whole.get("samples") or ())
    with Zipped(path) as archive:
        if "header.json" in archive.names:
            head = parsed(archive.read("header.json"), f"{path}: header.json")
        elif "_journal/start.json" in archive.names:  # of an evaluation that is under way, or was killed
            head = {"status": "started", **parsed(archive.read("_journal/start.json"), f"{path}: _journal/start.json")}
        else:
            raise StudyError(f"{path} is no log of Inspect (it has no header.json)")
    return head, _packed(path)


def _packed(path: Path) -> Iterator[Sample]:
    with Zipped(path) as archive:
        for name in archive.names:
            if name.startswith("samples/"):
                yield parsed(archive.read(name), f"{path}: {name}")


def _row(
    sample: Sample, suite: str, model: str, reading: ReadOptions, score: str | None, path: Path
) -> tuple[Row, bool]:
    at = f"{path}: sample {sample.get('id')!r}, epoch {sample.get('epoch', 1)}"
    values = _values(sample)
    value = values.get(score) if score is not None else next(iter(values.values()), None)
    error = sample.get("error") is not None
    usage: Sequence[Mapping[str, Any]] = () if error else list((sample.get("model_usage") or {}).values())
    costs = [u.get("total_cost") for u in usage]
    messages = sample.get("messages") or []
    row = make_row(
        model,
        sample.get("id"),
        sample.get("epoch", 1),
        None
        if error
        else as_resolved(_LETTERS.get(value, value) if isinstance(value, str) else value, at, reading.threshold),
        suite=suite,
        model=model,
        seconds=None if error else as_number(sample.get("total_time"), f"{at}, total_time"),
        steps=None if error else sum(m.get("role") == "assistant" for m in messages) or None,
        cost=total(costs) if costs else None,
        **_usage(usage),
    )
    return row, error


def _values(sample: Sample) -> dict[str, Any]:
    """The scores of a sample by name; those of a scorer that gives several are `scorer/name`."""
    found: dict[str, Any] = {}
    for name, score in (sample.get("scores") or {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            found |= {f"{name}/{part}": v for part, v in value.items()}
        else:
            found[name] = value
    return found


def _usage(used: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    if not used:
        return {}
    caches = ("input_tokens_cache_read", "input_tokens_cache_write")
    return {
        "input_tokens": sum(int(u.get(k) or 0) for u in used for k in ("input_tokens", *caches)),
        "output_tokens": sum(int(u.get("output_tokens") or 0) for u in used),
    }


def _notes(
    path: Path, head: Mapping[str, Any], rows: Sequence[Row], failed: int, score: str | None, scorers: list[str]
) -> list[str]:
    name, notes = path.name, list[str]()
    if head.get("status") != "success":
        notes.append(f"{name}: the evaluation did not come to its end (status {head.get('status')})")
    if failed:
        notes.append(f"{name}: {failed} of {len(rows)} samples ended with an error, and count as missing")
    unscored = sum(r["resolved"] is None for r in rows) - failed
    if unscored:
        notes.append(f"{name}: {unscored} of {len(rows)} samples have no score, and count as missing")
    if len(scorers) > 1:
        notes.append(f"{name}: resolved is the score {score!r} of {', '.join(scorers)}")
    if head.get("invalidated"):
        notes.append(f"{name}: somebody marked this log as invalid")
    return notes
