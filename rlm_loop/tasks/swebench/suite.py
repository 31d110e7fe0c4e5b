"""Instances as tasks: the question is the issue, the workspace the repository at its commit, the artifact a diff."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.models.weights import cache_folder
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.clones import CloneError, clone_of, need
from rlm_loop.tasks.swebench.instance import Instance, InstanceScorer
from rlm_loop.tasks.swebench.source import read_instances, select
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.git import Git


def swebench(
    name: str,
    *,
    repos: str | os.PathLike[str] | None = None,
    clone: bool | str = False,
    ids: Collection[str] | None = None,
    only: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    hints: bool = False,
    python: str | None = None,
    **source: Any,
) -> Suite:
    """Return the suite of `lite`, `verified`, `full`, `multilingual`, `hf://OWNER/NAME`, or of a file of instances.

    `repos` is a folder of local clones or bare mirrors (see `clone_of`); without one the tasks can be listed, and say
    so when they are run.  `clone=True` makes bare mirrors of those that are not there, from GitHub, or from the address
    that is given with `{repo}` in it.  `ids`, `only`, `sample` and `seed` choose instances (see `select`).  The
    question is the problem statement; `hints` appends the discussion of the issue, which most comparisons leave out.
    With `python`, an interpreter that has the repository's dependencies, patches are judged here; without it they stay
    unjudged until the official harness has run.  What else is given goes to the hub: `split`, `revision`.

    Raises `SuiteFileError` and `CloneError` (both `ValueError`), each one line that says what to do.
    """
    chosen = select(read_instances(name, **source), ids=ids, only=only, sample=sample, seed=seed)
    if not chosen:
        raise SuiteFileError(f"{name}: there is no instance, or the choice leaves none; widen ids, only or sample")
    clones = {} if repos is None and not clone else _clones(chosen, repos, clone)
    title = name if name.startswith("hf://") else Path(name).name  # without the folder that a file lies in
    tasks = tuple(_task(each, clones.get(each.repo), hints, python) for each in chosen)
    return Suite(f"swebench:{title}", tasks, f"SWE-bench instances of {title}")


def _clones(
    instances: Iterable[Instance], repos: str | os.PathLike[str] | None, clone: bool | str
) -> Mapping[str, Git]:
    """Return the clone of each repository, with all base commits checked."""
    folder = cache_folder().with_name("repositories") if repos is None else Path(repos).expanduser()
    address = clone if isinstance(clone, str) else "https://github.com/{repo}.git" if clone else ""
    if address:
        print(f"cloning what is not yet in {folder}", file=sys.stderr)
    found: dict[str, Git] = {}
    for each in instances:
        if each.repo not in found:
            found[each.repo] = clone_of(each.repo, folder, address.replace("{repo}", each.repo))
        need(found[each.repo], each.base_commit, f"{each.instance_id}: field 'base_commit'")
    return found


def _task(instance: Instance, clone: Git | None, hints: bool, python: str | None) -> Task:
    opened: Callable[[], Workspace] = partial(_no_workspace, instance.repo)
    if clone is not None:
        opened = partial(Workspace, clone.folder, commit=instance.base_commit)
    discussion = f"\n\nDiscussion:\n{instance.hints_text}" if hints and instance.hints_text.strip() else ""
    return Task(
        instance.instance_id,
        f"{instance.problem_statement}{discussion}",
        InstanceScorer(instance, opened, python),
        instance.patch or None,
        workspace=opened,
        needs_repl=False,
        tags=("code", "repair", "swebench", instance.repo),
        facts={"repo": instance.repo, "base_commit": instance.base_commit},
    )


def _no_workspace(repo: str) -> Workspace:
    """Stand for a workspace where no folder of repositories was named."""
    raise CloneError(f"{repo} is needed: name a folder of clones with get_suite(..., repos=FOLDER), or use clone=True")
