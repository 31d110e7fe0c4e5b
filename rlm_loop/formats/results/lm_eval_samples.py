"""What lm-evaluation-harness writes with `--log_samples`: `samples_TASK_DATE.jsonl`, a line for each document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm_loop.formats.results.source import ReadOptions, Source, objects_of, parsed, read_bytes
from rlm_loop.study.compare.columns import as_resolved, make_row
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import Row

_NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<date>\d{4}-\d\d-\d\dT[\d:.\-]+))?\.jsonl(\.gz)?")
#: What a line holds beside its metrics; versions before 0.4.8 do not say which are metrics.
_OTHERS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash", "schema_version"),
}

Line = Mapping[str, Any]


def is_samples(record: Mapping[str, Any]) -> bool:
    """Whether a line of JSON is a sample of lm-evaluation-harness."""
    return "doc_id" in record and "resps" in record


def samples_in(folder: Path) -> list[Path]:
    """The files of samples in a folder and those below it; of several of one task beside each other the newest."""
    newest: dict[tuple[Path, str], Path] = {}
    for path in sorted(folder.rglob("samples_*.jsonl*")):
        if found := _NAME.fullmatch(path.name):
            newest[path.parent, found["task"]] = path  # dates sort as text
    return sorted(newest.values())


def read_samples(path: Path, reading: ReadOptions) -> Source:
    """The documents of one task, one row each; the suite is the task, the arm what the file of results calls the model.

    `reading.score` is a metric (`acc_norm`), a filter (`flexible-extract`), or both as the harness writes them
    (`exact_match,flexible-extract`); else the first metric and filter of the file count, which a note says.  Raises
    `StudyError` where a document is there twice, a metric is missing or is neither right nor wrong.
    """
    lines, numbers = objects_of(path)
    if not lines:
        raise StudyError(f"{path} holds no samples")
    named = _NAME.fullmatch(path.name)
    task = named["task"] if named else path.stem
    metric, chosen, told = _chosen(lines, reading.score, path)
    rows: list[Row] = []
    hashes: dict[tuple[str, str], str] = {}
    seen: dict[str, int] = {}
    arm = _model_of(path, named["date"] if named else None)
    for line, number in zip(lines, numbers, strict=True):
        at, doc = f"{path}, line {number}", str(line.get("doc_id"))
        if str(line.get("filter", "none")) != chosen:
            continue
        if doc in seen:
            raise StudyError(f"{at}: document {doc} is in line {seen[doc]} already")
        if metric not in line:
            raise StudyError(f"{at}: document {doc} has no {metric}")
        seen[doc] = number
        rows.append(make_row(arm, doc, 0, as_resolved(line[metric], f"{at}, {metric}", reading.threshold), suite=task))
        hashes[task, doc] = str(line.get("doc_hash") or line.get("doc"))
    notes = [f"{task}: {told}"] if told else []
    return Source(path, "lm-evaluation-harness samples", rows, notes, hashes)


def _chosen(lines: Sequence[Line], score: str | None, path: Path) -> tuple[str, str, str]:
    """Which metric and which filter count, and what to say of it where there is a choice."""
    filters = list(dict.fromkeys(str(line.get("filter", "none")) for line in lines))
    metrics = list(lines[0].get("metrics") or [k for k in lines[0] if k not in _OTHERS])
    metric, filter_ = metrics[0] if metrics else "", filters[0]
    for part in (score or "").split(","):
        if part in metrics:
            metric = part
        elif part in filters:
            filter_ = part
        elif part:
            raise StudyError(f"{path} has no score {part!r}; it has {', '.join(metrics)}; filters {', '.join(filters)}")
    if not metric:
        raise StudyError(f"{path} has no metric; its lines hold {', '.join(lines[0])}")
    several = len(filters) > 1 or len(metrics) > 1
    among = f" (metrics {', '.join(metrics)}; filters {', '.join(filters)})"
    return metric, filter_, f"resolved is {metric},{filter_}{among}" if several else ""


def _model_of(path: Path, date: str | None) -> str:
    """What the results beside the samples call the model; empty where they do not."""
    for beside in sorted(path.parent.glob(f"results_{date or ''}*.json"), reverse=True):
        with suppress(StudyError):
            value = parsed(read_bytes(beside), beside)
            return str(value.get("model_name") or "") if isinstance(value, dict) else ""
    return ""
