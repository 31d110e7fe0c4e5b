"""Results of other tools as rows: tables, Inspect's logs, lm-eval's samples, SWE-bench's reports, Harbor's trials."""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.study.compare.columns import as_number, as_resolved, column_names, make_row, rows_of_table
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import load_study
from rlm_loop.study.statistics.descriptive import total
from rlm_loop.study.store.reading import LOCK
from rlm_loop.study.store.rows import Row
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.report import read_report
from rlm_loop.traces.received import file_bytes, most_of, parse

#: What names of tables end in, gzip included or not.
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_NO_VERDICT = "it holds one run and no verdict; give the results of a benchmark, a task a row"
_SAMPLES = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d:.\-]+)?\.jsonl(\.gz)?")
_ZSTD = 93  # how a zip archive calls it
_LETTERS = {"C": True, "I": False, "N": False, "P": 0.5}


@dataclass(frozen=True)
class Options:
    """The score that says that a task is resolved, from which value on, and columns with names of their own."""

    score: str | None = None
    threshold: float | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Source:
    """The results in one path; `notes` are what a reader of the results has to know.

    The `arm` of a row is what the file itself calls it, and empty where it does not say.
    """

    path: Path
    rows: list[Row]
    notes: list[str] = field(default_factory=list[str])


def sources_at(path: Path, options: Options) -> list[Source]:
    """Read what lies at a path, by its name and what it begins with.  Raises `StudyError` for what cannot be read."""
    if not path.exists():
        raise StudyError(f"there is no {path}; give a file of results, or a folder that holds some")
    if path.is_dir():
        return _in_folder(path, options)
    plain = path.name.removesuffix(".gz")
    if plain.endswith(".eval"):
        return [_inspect(path, options)]
    if plain.endswith(".json"):
        value = _parsed(_bytes(path), path)
        report: dict[str, Any] = value if isinstance(value, dict) else {}
        if {"version", "status", "eval"} <= set(report):
            return [_inspect(path, options)]
        if report and ("resolved_ids" in report or all(type(v) is bool for v in report.values())):
            return [_report(path, report)]
        if "trajectory_format" in report:
            raise StudyError(f"{path} is a transcript of mini-swe-agent: {_NO_VERDICT}")
    if plain.endswith(".jsonl") and (objects := _objects(path)):
        names = {name for _, line in objects[:20] for name in line}  # a transcript may begin with lines of other kinds
        if "sessionId" in names and "task" not in names:
            raise StudyError(f"{path} is a transcript of Claude Code: {_NO_VERDICT}")
        if {"doc_id", "resps"} <= names:
            return [_samples(path, options)]
    if plain.endswith(TABLES):
        return [_table(path, options)]
    raise StudyError(f"{path} is no kind of results that is known; give one that ends in {', '.join(TABLES)} or .eval")


def _in_folder(folder: Path, options: Options) -> list[Source]:
    if (folder / LOCK).is_file():
        return [Source(folder, [*load_study(folder).rows])]
    if logs := sorted(folder.rglob("*.eval")):
        return [_inspect(log, options) for log in logs]
    if samples := [path for path in sorted(folder.rglob("samples_*")) if _SAMPLES.fullmatch(path.name)]:
        return [_samples(path, options) for path in samples]
    # A job has a `result.json` of its own, but nothing of a trial beside it.
    results = [path for level in ("*", "*/*") for path in folder.glob(f"{level}/result.json")]
    trials = [p for p in results if any((p.parent / name).exists() for name in ("trial.log", "agent", "verifier"))]
    if trials:
        return [_job(folder, trials, options)]
    raise StudyError(
        f"{folder} holds no results that are known: no {LOCK}, no .eval, no samples_*.jsonl, no trials of Harbor"
    )


def _bytes(path: Path) -> bytes:
    try:
        return file_bytes(path)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from error


def _parsed(raw: str | bytes, where: object) -> Any:
    try:
        return parse(raw)
    except ValueError as error:
        raise StudyError(f"{where} is no JSON ({error})") from None


def _objects(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with the numbers of their lines."""
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(_bytes(path).decode("utf-8-sig", "replace").split("\n"), 1):
        if line.strip():
            value = _parsed(line, f"{path}, line {number},")
            if not isinstance(value, dict):
                raise StudyError(f"{path}, line {number}, is no JSON object")
            found.append((number, value))
    return found


def _table(path: Path, options: Options) -> Source:
    """A row for each task, arm and seed; columns are found by their spelling, or as they are named."""
    numbered = _records(path)
    columns = {**({"resolved": options.score} if options.score else {}), **options.columns}
    names = column_names([record for _, record in numbered], str(path), columns, "")
    placed = [(f"{path}, line {number}", record) for number, record in numbered]
    rows = rows_of_table(placed, names, arm="", threshold=options.threshold)
    told = ", ".join(f"{ours} from {theirs!r}" for ours, theirs in names.items() if ours != theirs)
    return Source(path, rows, [f"{path.name}: {told}"] if told else [])


def _records(path: Path) -> list[tuple[int, dict[str, Any]]]:
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind == ".parquet":
        import pandas

        try:
            return [*enumerate(pandas.read_parquet(io.BytesIO(_bytes(path))).to_dict("records"), 1)]
        except ImportError:
            raise StudyError(f"to read {path}, pandas needs pyarrow: pip install pyarrow") from None
        except (ValueError, OSError) as error:
            raise StudyError(f"{path} is no Parquet table ({error})") from None
    if kind not in (".csv", ".tsv"):
        return _objects(path)
    text = _bytes(path).decode("utf-8-sig", "replace")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        found: list[tuple[int, dict[Any, Any]]] = [(reader.line_num, record) for record in reader]
    except csv.Error as error:
        raise StudyError(f"{path}, line {reader.line_num}: {error}") from None
    if too_long := [number for number, record in found if None in record]:
        raise StudyError(f"{path}, line {too_long[0]}: more cells than columns")
    return found


def _inspect(path: Path, options: Options) -> Source:
    """A row for each sample and epoch; the arm is the model, the suite the task.

    A sample that ended with an error, or that nothing scored, is not judged.  Tokens include what was read from and
    written to a cache, which Inspect's do not, and not those of a grader.
    """
    head, samples = _opened(path)
    if head.get("version") != 2:
        raise StudyError(f"{path} is a log of schema {head.get('version')}; this version reads schema 2")
    about: dict[str, Any] = head.get("eval") or {}
    suite, model = str(about.get("task") or ""), str(about.get("model") or "")
    rows, scorers, failed = list[Row](), dict[str, None](), 0
    for sample in samples:
        task, epoch = sample.get("id"), sample.get("epoch", 1)
        at = f"{path}: sample {task!r}, epoch {epoch}"
        values = _values(sample)
        scorers |= dict.fromkeys(values)
        if sample.get("error") is not None:
            failed += 1
            rows.append(make_row(model, task, epoch, None, suite=suite, model=model))
            continue
        value = values.get(options.score or next(iter(scorers), ""))
        value = _LETTERS.get(value, value) if isinstance(value, str) else value
        resolved = as_resolved(value, at, options.threshold)
        steps = sum(message.get("role") == "assistant" for message in sample.get("messages") or [])
        known = {"seconds": as_number(sample.get("total_time"), f"{at}, total_time"), "steps": steps or None}
        rows.append(make_row(model, task, epoch, resolved, suite=suite, model=model, **known, **_usage(sample)))
    if not rows:
        raise StudyError(f"{path} holds no samples; was it written without them?")
    score = options.score or next(iter(scorers), None)
    if scorers and score not in scorers:
        raise StudyError(f"{path} has no score {score!r}; it has {', '.join(scorers)}")
    unscored = sum(row["resolved"] is None for row in rows) - failed
    notes = {
        f"the evaluation did not come to its end (status {head.get('status')})": head.get("status") != "success",
        f"{failed} of {len(rows)} samples ended with an error, and count as missing": failed,
        f"{unscored} of {len(rows)} samples have no score, and count as missing": unscored,
        f"resolved is the score {score!r} of {', '.join(scorers)}": len(scorers) > 1,
    }
    return Source(path, rows, [f"{path.name}: {note}" for note, holds in notes.items() if holds])


def _values(sample: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of a sample by name; those of a scorer that gives several are `scorer/name`."""
    found: dict[str, Any] = {}
    for name, score in (sample.get("scores") or {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        found |= {f"{name}/{part}": v for part, v in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _usage(sample: Mapping[str, Any]) -> dict[str, Any]:
    used: list[Mapping[str, Any]] = [*(sample.get("model_usage") or {}).values()]
    grader: Mapping[str, Any] = (sample.get("role_usage") or {}).get("grader") or {}
    if not used:
        return {}
    names = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")

    def spent(*of: str) -> int:
        return sum(int(u.get(name) or 0) for u in used for name in of) - sum(int(grader.get(name) or 0) for name in of)

    cost = total([u.get("total_cost") for u in used])
    cost = None if cost is None else cost - (grader.get("total_cost") or 0.0)
    return {"input_tokens": spent(*names), "output_tokens": spent("output_tokens"), "cost": cost}


def _opened(path: Path) -> tuple[dict[str, Any], Iterable[dict[str, Any]]]:
    """Return what a log says of itself, and its samples: an archive has them in files of their own."""
    if not path.name.endswith(".eval"):
        whole = _parsed(_bytes(path), path)
        return whole, whole.get("samples") or ()
    raw = _bytes(path)
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        told = f"{path} is cut off or damaged ({error}); copy it again, or run its evaluation again"
        raise StudyError(told) from None
    names = archive.namelist()
    if sum(member.file_size for member in archive.infolist()) > most_of(len(raw)):
        raise StudyError(f"{path} is too large to be read whole")
    if "header.json" not in names:
        raise StudyError(f"{path} has no header.json: it is no log of Inspect, or its evaluation did not end")

    def read(name: str) -> Any:
        return _parsed(_unpacked(path, raw, archive, name), f"{path}: {name}")

    return read("header.json"), (read(name) for name in names if name.startswith("samples/"))


def _unpacked(path: Path, raw: bytes, archive: zipfile.ZipFile, name: str) -> bytes:
    """A member of an archive, which zstd may have packed; Python's own library reads that from 3.14 on only."""
    member = archive.getinfo(name)
    try:
        if member.compress_type != _ZSTD:
            return archive.read(name)
        import zstandard

        lengths = (raw[member.header_offset + at : member.header_offset + at + 2] for at in (26, 28))
        start = member.header_offset + 30 + sum(int.from_bytes(length, "little") for length in lengths)
        packed = io.BytesIO(raw[start : start + member.compress_size])
        data = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read(member.file_size + 1)
        if zlib.crc32(data) != member.CRC:
            raise ValueError("it is not what was packed")
        return data
    except ImportError:
        raise StudyError(f"{path} is packed with zstd; to read it: {install_line('studies')}") from None
    except Exception as error:  # each way of packing has errors of its own
        raise StudyError(f"{path}: {name} is damaged ({error})") from None


def _samples(path: Path, options: Options) -> Source:
    """A row for each document of lm-evaluation-harness; the suite is the task.

    The score is a metric (`acc_norm`), a filter (`flexible-extract`) or both (`exact_match,flexible-extract`), else the
    first metric and filter of the file.  A document without the metric is missing.
    """
    numbered, named = _objects(path), _SAMPLES.fullmatch(path.name)
    lines, task = [line for _, line in numbered], named["task"] if named else path.stem
    filters = list(dict.fromkeys(str(line.get("filter", "none")) for line in lines))
    metrics = list(dict.fromkeys(metric for line in lines for metric in line.get("metrics") or ()))
    if not metrics:
        raise StudyError(f"{path} has no line that names its metrics")
    metric, chosen = metrics[0], filters[0]
    for part in options.score.split(",") if options.score else ():
        if part not in metrics and part not in filters:
            raise StudyError(f"{path} has no score {part!r}; it has {', '.join(metrics)}; filters {', '.join(filters)}")
        metric, chosen = part if part in metrics else metric, part if part in filters else chosen
    rows: list[Row] = []
    for number, line in numbered:
        if str(line.get("filter", "none")) == chosen:
            resolved = as_resolved(line.get(metric), f"{path}, line {number}, {metric}", options.threshold)
            rows.append(make_row("", line.get("doc_id"), 0, resolved, suite=task))
    told = f"resolved is {metric},{chosen} (metrics {', '.join(metrics)}; filters {', '.join(filters)})"
    return Source(path, rows, [f"{task}: {told}"] if len(filters) > 1 or len(metrics) > 1 else [])


def _report(path: Path, report: Mapping[str, Any]) -> Source:
    """A row for each instance of a report of SWE-bench's harness, or of an `eval_results.json` (id: resolved or not).

    An empty patch is not resolved; an instance in which the harness met an error is missing.
    """
    if "resolved_ids" not in report:
        return Source(path, [make_row("", task, 0, bool(resolved)) for task, resolved in report.items()])
    try:
        verdicts = read_report(path).verdicts
    except SuiteFileError as error:
        raise StudyError(str(error)) from None
    missing = sum(verdict.resolved is None for verdict in verdicts)
    told = f"{path.name}: the harness met an error in {missing} of {len(verdicts)} instances, which count as missing"
    rows = [make_row("", verdict.instance_id, 0, verdict.resolved) for verdict in verdicts]
    return Source(path, rows, [told] if missing else [])


def _job(folder: Path, results: Iterable[Path], options: Options) -> Source:
    """A row for each trial of Harbor; the arm is agent and model, the suite the data set, the score a reward.

    Trials of one task with one arm are numbered in the order of their start.  One without a reward is not judged.
    """
    trials, score, rows = list[tuple[Path, dict[str, Any]]](), options.score or "reward", list[Row]()
    for path in results:
        value = _parsed(_bytes(path), path)
        if not isinstance(value, dict) or not {"task_name", "trial_name", "agent_info"} <= set(value):
            lacks = "no task_name, trial_name, agent_info"
            raise StudyError(f"{path} is no result of a trial that this version knows ({lacks})")
        trials.append((path, value))
    seeds = Counter[tuple[str, str, str]]()
    for path, trial in sorted(trials, key=lambda t: (str(t[1].get("started_at")), str(t[0]))):
        about: Mapping[str, Any] = trial.get("agent_info") or {}
        arm = " ".join(str(part) for part in (about.get("name"), (about.get("model_info") or {}).get("name")) if part)
        suite, task = str(trial.get("source") or ""), str(trial["task_name"])
        ended = str((trial.get("exception_info") or {}).get("exception_type") or "")
        reward = ((trial.get("verifier_result") or {}).get("rewards") or {}).get(score)
        resolved = as_resolved(reward, f"{path}, {score}", options.threshold)
        used: Mapping[str, Any] = trial.get("agent_result") or {}
        names = {"input_tokens": "n_input_tokens", "output_tokens": "n_output_tokens", "cost": "cost_usd"}
        known = {ours: as_number(used.get(theirs), f"{path}, {theirs}") for ours, theirs in names.items()}
        rows.append(make_row(arm, task, seeds[arm, suite, task], resolved, suite=suite, stop=ended, **known))
        seeds[arm, suite, task] += 1
    missing = sum(row["resolved"] is None for row in rows)
    if missing == len(rows):
        raise StudyError(f"no trial of {folder} has a reward {score!r}")
    told = f"{folder.name}: {missing} of {len(rows)} trials have no reward, and count as missing"
    return Source(folder, rows, [told] if missing else [])
