"""A study on a cluster: an array of jobs, each of which runs every n-th episode into a file of its own.

No server has to live on and no port is opened: jobs share the folder and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import key, to_run
from rlm_loop.study.study import Study


def run_share(make: Callable[[], Study], folder: str, index: int, jobs: int) -> int:
    """Run the share of one job; returns the number of rows that the folder has then."""
    return len(make().run(folder, share=(index, jobs)).rows)


def submit(
    make: Callable[[], Study],
    folder: str | Path,
    *,
    array: int,
    minutes: int,
    cluster: str | None = None,
    **options: Any,
) -> list[Any]:
    """Send the jobs of an array to Slurm through submitit, and return them; called again, what is left is run.

    `make` returns the study; it is called here and in each job.  The fairness check is made and `study.json` is written
    here, before the first job begins.  Job i of `array` runs the episodes i, i + array, ... of the grid that have no
    row yet; a job without any is not sent.  Jobs of one array share the files of a local model and the folder.
    `cluster` is `slurm` (default where it is found) or `local`, which are processes of this machine; `options` are
    submitit's, such as `slurm_partition`, `cpus_per_task` or `mem_gb`.
    Raises `StudyError` as `Study.run` does, and `ImportError` where submitit is missing.
    """
    try:
        import submitit
    except ImportError as error:
        raise ImportError(f"array jobs need submitit: {install_line('cluster')}") from error
    if array < 1:
        raise StudyError(f"array is the number of jobs, 1 or more, not {array}")
    study = make()
    found = study.run(folder, progress=False, seconds=0)
    known = {key(row): row for row in found.rows}
    grid = study.episodes()
    left = [i for i in range(array) if any(to_run(known.get(e.key), retry_failed=False) for e in grid[i::array])]
    executor = submitit.AutoExecutor(folder=Path(folder).absolute() / "jobs", cluster=cluster)
    executor.update_parameters(name=study.name, timeout_min=minutes, **options)
    task = partial(run_share, make, str(Path(folder).absolute()))
    return executor.map_array(task, left, [array] * len(left)) if left else []
