"""Tasks of ours as instances of SWE-bench's schema, so that others can run them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.jsonl import SuiteFileError, write_lines
from rlm_loop.tasks.swebench.instance import Instance
from rlm_loop.workspace.git import Git, prepare


def instances_from(suite: Suite | Iterable[Task], repos: str | os.PathLike[str] | None = None) -> tuple[Instance, ...]:
    """The instances of tasks that start from a checkout and are judged by its tests.

    Those of SWE-bench and of git histories are what they were made of.  Others, such as `package_bugs`, start from no
    commit that anybody has: their checkouts are written to bare repositories in the folder `repos`, which
    `get_suite("swebench:FILE", repos=...)` takes.  Which tests count is asked of what scores the task, an object with
    `fail_to_pass` and `pass_to_pass` (and, where it knows the solution, `patch`), or a `partial` that was given one.

    Raises `SuiteFileError` for a task that is not of this kind, or without the folder where one is needed.
    """
    return tuple(_instance(task, repos) for task in suite)


def _instance(task: Task, repos: str | os.PathLike[str] | None) -> Instance:
    found = getattr(task.score, "instance", None)
    if isinstance(found, Instance):
        return found
    tests = _tests(task.score)
    if tests is None or task.workspace is None:
        raise SuiteFileError(f"task {task.id} is no instance: it has no checkout that is judged by a list of tests")
    if repos is None:
        raise SuiteFileError(f"task {task.id} starts from no commit; name a folder (repos) for the repository of it")
    name = f"rlm-loop/{_plain(str(task.facts.get('package') or task.id))}"
    target = Path(repos) / f"{name.replace('/', '__')}.git"
    with task.workspace() as space:
        commit = _write_commit(space.root, target, _plain(task.id))
    return Instance(
        instance_id=_plain(task.id),
        repo=name,
        base_commit=commit,
        problem_statement=task.question,
        patch=str(getattr(tests, "patch", "")),
        test_patch=str(getattr(tests, "test_patch", "")),
        fail_to_pass=tuple(tests.fail_to_pass),
        pass_to_pass=tuple(tests.pass_to_pass),
    )


def _tests(score: Any) -> Any:
    """What lists the tests: the scorer, or something that a `partial` was given."""
    given = [score, *(score.args if isinstance(score, partial) else ())]
    return next((g for g in given if hasattr(g, "fail_to_pass") and hasattr(g, "pass_to_pass")), None)


def _write_commit(root: Path, target: Path, branch: str) -> str:
    """The files of a folder as the one commit of a branch; the same files give the same commit anywhere."""
    bare, files = Git(target), Git(target, root)
    prepare(bare, "--bare")
    index = str(target / "export-index")
    try:
        files("read-tree", "--empty", GIT_INDEX_FILE=index)
        files("add", "-A", "-f", "--", ".", GIT_INDEX_FILE=index)
        tree = files("write-tree", GIT_INDEX_FILE=index).decode().strip()
    finally:
        Path(index).unlink(missing_ok=True)
    commit = bare("commit-tree", tree, "-m", "start").decode().strip()
    bare("update-ref", f"refs/heads/{branch}", commit)
    return commit


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "task"


def write_instances(
    instances: Suite | Iterable[Task] | Iterable[Instance],
    path: str | os.PathLike[str],
    repos: str | os.PathLike[str] | None = None,
) -> Path:
    """Write instances (or those of a suite, see `instances_from`) as JSON Lines of the schema; returns the path."""
    rows = [i if isinstance(i, Instance) else _instance(i, repos) for i in instances]
    lines = "".join(json.dumps(i.row()) + "\n" for i in rows)
    return write_lines(path, lines, ".jsonl", "instances are written as JSON Lines")
