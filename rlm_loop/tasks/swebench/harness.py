"""Judge predictions by SWE-bench's own harness, in containers."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from rlm_loop.errors import install_line
from rlm_loop.tasks.swebench.instance import place_of, read_instances, select
from rlm_loop.tasks.swebench.predictions import read_predictions
from rlm_loop.tasks.swebench.report import Report, read_report


class HarnessError(Exception):
    """The harness cannot be run here, or came to no report; the message is one line that says what to do."""


def run_here(command: Sequence[str], folder: Path) -> int:
    """Start the harness in a folder, with its own output on standard error, and return its exit code.

    Raises `HarnessError` where no container engine answers.
    """
    import docker  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]

    try:
        with closing(docker.from_env(timeout=20)) as client:
            client.ping()
    except Exception as error:  # docker, requests, urllib3 and the operating system each have their own
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise HarnessError(
            f"no container engine answers ({reason}); start Docker, or podman's service with DOCKER_HOST set to its "
            "socket, or run the same command where there is one: the file of predictions is all it needs"
        ) from None
    return subprocess.run(command, cwd=folder, stdout=sys.stderr.fileno(), check=False).returncode


def evaluate_predictions(
    predictions: str | os.PathLike[str],
    dataset: str,
    *,
    split: str = "test",
    run_id: str = "rlm-loop",
    workers: int = 4,
    timeout: int = 1800,
    folder: str | os.PathLike[str] = ".",
    run: Callable[[Sequence[str], Path], int] = run_here,
) -> Report:
    """Run the harness on a file of predictions and read its report back.

    `dataset` is a name or a file, as for the suite.  Logs and the report go below `folder`; with the same `run_id`
    what was evaluated already is not run again.  `timeout` is in seconds, for one instance.  `run` starts a command in
    a folder and returns its exit code.

    Raises `ImportError` that names the extra, `HarnessError` where no container engine answers or no report was
    written, and `SuiteFileError` for predictions or instances that do not fit.
    """
    try:
        importlib.metadata.version("swebench")  # a folder of that name is not the package
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"the official harness is not installed: {install_line('swebench')}") from None
    if not re.fullmatch(r"[A-Za-z0-9._-]+", run_id):
        raise HarnessError(f"a run id is made of letters, digits, '.', '_' and '-', not {run_id!r}")
    rows = read_predictions(predictions)
    models = sorted({row.model_name_or_path for row in rows})
    if len(models) != 1:
        raise HarnessError(f"{predictions} has predictions of {', '.join(models)}; give one model a file")
    here, ids = Path(folder).expanduser().resolve(), [row.instance_id for row in rows]
    here.mkdir(parents=True, exist_ok=True)
    place = place_of(dataset)
    if not place.startswith("hf://"):  # of a file the harness gets what is needed, as it wants it
        wanted, place = select(read_instances(dataset), ids=ids), str(here / f"{run_id}.instances.jsonl")
        Path(place).write_text("".join(json.dumps(dict(i.row)) + "\n" for i in wanted), encoding="ascii")
    command = harness_command(
        predictions, place.removeprefix("hf://"), ids, split=split, run_id=run_id, workers=workers, timeout=timeout
    )
    report = here / f"{models[0].replace('/', '__')}.{run_id}.json"
    before = report.stat().st_mtime_ns if report.exists() else None
    code = run(command, here)
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
