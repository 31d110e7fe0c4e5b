"""Judge predictions by SWE-bench's own harness, in containers."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.predictions import Prediction, read_predictions
from rlm_loop.tasks.swebench.report import Report, read_report
from rlm_loop.tasks.swebench.source import place_of, read_instances, select

#: Columns that the harness needs from version 5 on; the older ones knew how to test each repository themselves.
COLUMNS = ("image", "eval_script", "log_parser", "eval_type")


class HarnessError(Exception):
    """The harness cannot be run here, or came to no report; the message is one line that says what to do."""


def evaluate_predictions(
    predictions: str | os.PathLike[str],
    dataset: str,
    *,
    split: str = "test",
    run_id: str = "rlm-loop",
    ids: Collection[str] | None = None,
    workers: int = 4,
    timeout: int = 1800,
    folder: str | os.PathLike[str] = ".",
    engine: Callable[[], str] | None = None,
    run: Callable[[Sequence[str], Path], int] | None = None,
) -> Report:
    """Run the harness on a file of predictions and read its report back.

    `dataset` is a name or a file, as for the suite.  Logs and the report go below `folder`; with the same `run_id`
    what was evaluated already is not run again.  `timeout` is in seconds, for one instance.  `engine` says why no
    container engine can be used (empty: it can), `run` starts a command in a folder and returns its exit code;
    both default to the real thing.

    Raises `ImportError` that names the extra, `HarnessError` where no container engine answers or no report was
    written, and `SuiteFileError` for predictions or instances that do not fit.
    """
    version = harness_version()
    if not re.fullmatch(r"[A-Za-z0-9._-]+", run_id):
        raise HarnessError(f"a run id is made of letters, digits, '.', '_' and '-', not {run_id!r}")
    rows = read_predictions(predictions)
    if ids is not None:
        rows = tuple(p for p in rows if p.instance_id in ids)
    models = sorted({p.model_name_or_path for p in rows})
    if len(models) != 1:
        raise HarnessError(
            f"{predictions} has predictions of {', '.join(models) or 'none of these ids'}; give one model a file"
        )
    here = Path(folder).expanduser().resolve()
    here.mkdir(parents=True, exist_ok=True)
    name = _dataset(dataset, split, rows, here / f"{run_id}.instances.jsonl", version)
    problem = (engine or engine_problem)()
    if problem:
        raise HarnessError(
            f"no container engine answers ({problem}); start Docker, or podman's service with DOCKER_HOST set to its "
            "socket, or run the same command where there is one: the file of predictions is all it needs"
        )
    report = here / f"{models[0].replace('/', '__')}.{run_id}.json"
    before = report.stat().st_mtime_ns if report.exists() else None
    told = [p.instance_id for p in rows]
    command = harness_command(predictions, name, told, split=split, run_id=run_id, workers=workers, timeout=timeout)
    code = (run or _run)(command, here)
    if not report.exists() or report.stat().st_mtime_ns == before:
        raise HarnessError(f"the harness wrote no report {report} (exit code {code}); what it said stands above")
    return read_report(report)


def harness_command(
    predictions: str | os.PathLike[str],
    dataset: str,
    ids: Sequence[str],
    *,
    split: str = "test",
    run_id: str = "rlm-loop",
    workers: int = 4,
    timeout: int = 1800,
) -> list[str]:
    """The command that starts the official harness; `dataset` is a name of the hub or a file."""
    words = ["--dataset_name", dataset, "--split", split, "--predictions_path", str(Path(predictions).resolve())]
    words += ["--run_id", run_id, "--max_workers", str(workers), "--timeout", str(timeout)]
    return [sys.executable, "-m", "swebench.harness.run_evaluation", *words, "--instance_ids", *ids]


def harness_version() -> tuple[int, ...]:
    """The version of the installed harness.  Raises `ImportError` that names the extra."""
    try:
        installed = importlib.metadata.version("swebench")  # a folder of that name is not the package
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"the official harness is not installed: {install_line('swebench')}") from None
    return tuple(int(n) for n in re.findall(r"\d+", installed)[:3])


def engine_problem() -> str:
    """Say in one line why the harness can use no container engine here; empty where it can."""
    try:
        import docker  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]
    except ImportError:
        return "the Python package docker is not installed"
    client: Any = None
    try:
        client = docker.from_env(timeout=20)
        client.ping()
    except Exception as error:  # docker, requests, urllib3 and the operating system each have their own
        return " ".join(str(error).split())[:200] or type(error).__name__
    finally:
        if client is not None:
            client.close()
    return ""


def _dataset(dataset: str, split: str, rows: Sequence[Prediction], target: Path, version: tuple[int, ...]) -> str:
    """The set as the harness takes it: a name of the hub as it is, anything else as a JSONL file of what is needed."""
    place = place_of(dataset)
    if place.startswith("hf://"):
        return place.removeprefix("hf://")
    wanted = select(read_instances(dataset), ids=[p.instance_id for p in rows])
    lacking = [(i.instance_id, column) for i in wanted for column in COLUMNS if not i.more.get(column)]
    if version >= (5,) and lacking:
        raise SuiteFileError(
            f"{dataset}: {lacking[0][0]} has no column {lacking[0][1]!r}, which this version of the harness needs; "
            "take the set from the hub, or install swebench<5"
        )
    target.write_text("".join(json.dumps(i.row()) + "\n" for i in wanted), encoding="ascii")
    return str(target)


def _run(argv: Sequence[str], folder: Path) -> int:
    """In the foreground, with its own output on standard error: ours is the report."""
    try:
        return subprocess.run(argv, cwd=folder, stdout=sys.stderr.fileno(), check=False).returncode
    except OSError as error:
        raise HarnessError(f"the harness could not be started: {error.strerror}") from None
