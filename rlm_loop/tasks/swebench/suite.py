"""Instances as tasks: the question is the issue, the workspace the repository at its commit, the artifact a diff."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.clones import Clone, CloneError, fetch_clone, find_clone, own_folder
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.instance import Environment, Instance, InstanceScorer, python_for
from rlm_loop.tasks.swebench.source import read_instances, select
from rlm_loop.workspace import Workspace

if TYPE_CHECKING:
    from rlm_loop.workspace.testing import Isolation


def swebench(
    name: str,
    *,
    repos: str | os.PathLike[str] | None = None,
    clone: bool | str = False,
    ids: Collection[str] | None = None,
    only: Collection[str] | None = None,
    part: slice | str | None = None,
    sample: int | None = None,
    seed: int = 0,
    instruction: str = "",
    hints: bool = False,
    python: Environment = None,
    timeout: float = 1800.0,
    place: Isolation = "auto",
    run_tests: bool = False,
    **source: Any,
) -> Suite:
    """The suite of `lite`, `verified`, `full`, `multilingual`, `hf://OWNER/NAME`, or of a file or folder of instances.

    `repos` is a folder of local clones or bare mirrors (see `clones.find_clone`); without one the tasks can be listed,
    and say so when they are run.  `clone=True` makes bare mirrors of those that are not there, from GitHub, or from
    the address that is given with `{repo}` in it.  `ids`, `only` (repositories), `part`, `sample` and `seed` choose
    instances (see `select`).  The question is the problem statement; `instruction` is put before it, `hints` appends
    the discussion of the issue, which most comparisons leave out.  With `python` (see `scoring.Environment`) patches
    are judged here, in `timeout` seconds and at `place` (see `testing.Isolation`); without it they stay unjudged until
    the official harness has run.  With `run_tests` the model may run the repository's tests there too, as they are at
    the base commit.  What else is given goes to the hub: `split`, `revision`.

    Raises `SuiteFileError` and `CloneError` (both `ValueError`), each one line that says what to do.
    """
    chosen = select(read_instances(name, **source), ids=ids, only=only, part=part, sample=sample, seed=seed)
    if not chosen:
        raise SuiteFileError(f"{name}: the choice leaves no instance; widen ids, only, part or sample")
    places = _places(chosen, repos, clone)
    judged: dict[str, Any] = {"python": python, "timeout": timeout, "place": place, "run_tests": run_tests}
    tasks = tuple(task_of(i, places, instruction=instruction, hints=hints, **judged) for i in chosen)
    return Suite(f"swebench:{_title(name)}", tasks, f"SWE-bench instances of {_title(name)}")


def _title(name: str) -> str:
    """A file's suite is named after the file, without the folder it lies in."""
    return name if name.startswith("hf://") else Path(name).name


def _places(
    instances: Iterable[Instance], repos: str | os.PathLike[str] | None, clone: bool | str
) -> Mapping[str, Clone]:
    """The clone of each repository, with all base commits checked; empty where no folder was named."""
    if repos is None and not clone:
        return {}
    folder = Path(repos) if repos is not None else own_folder("repositories")
    commits: dict[str, list[Instance]] = {}
    for instance in instances:
        commits.setdefault(instance.repo, []).append(instance)
    found: dict[str, Clone] = {}
    for repo, many in commits.items():
        try:
            found[repo] = find_clone(repo, folder)
        except CloneError:
            if not clone:
                raise
            url = (clone if isinstance(clone, str) else "https://github.com/{repo}.git").replace("{repo}", repo)
            print(f"cloning {url} into {folder}", file=sys.stderr)
            found[repo] = fetch_clone(repo, folder, url)
        for instance in many:
            found[repo].need(instance.base_commit, f"{instance.instance_id}: field 'base_commit'")
    return found


def task_of(
    instance: Instance,
    places: Mapping[str, Clone],
    *,
    instruction: str = "",
    hints: bool = False,
    python: Environment = None,
    timeout: float = 1800.0,
    place: Isolation = "auto",
    run_tests: bool = False,
    tag: str = "swebench",
) -> Task:
    """An instance as a task; `places` are the clones by repository, the options those of `swebench`."""
    clone, interpreter = places.get(instance.repo), python_for(python, instance)
    opened: Callable[[], Workspace] = partial(_no_workspace, instance.repo)
    if clone is not None:
        opened = partial(Workspace, clone.path, commit=instance.base_commit)
    offered = opened
    if run_tests and interpreter is None:
        raise ValueError(f"run_tests needs an environment for {instance.instance_id}: give its interpreter as python=")
    if run_tests and clone is not None:
        offered = partial(tested, clone.path, instance.base_commit, interpreter, place)
    discussion = f"\n\nDiscussion:\n{instance.hints_text}" if hints and instance.hints_text.strip() else ""
    before = f"{instruction.rstrip()}\n\n" if instruction.strip() else ""
    return Task(
        instance.instance_id,
        f"{before}{instance.problem_statement}{discussion}",
        InstanceScorer(instance, opened, interpreter, timeout, place),
        instance.patch or None,
        workspace=offered,
        needs_repl=False,
        tags=("code", "repair", tag, instance.repo),
        facts={"repo": instance.repo, "base_commit": instance.base_commit},
    )


def tested(source: Path, commit: str, python: str | None, place: Isolation) -> Workspace:
    """A checkout whose tests are a tool of the model's too."""
    from rlm_loop.workspace.testing import tests_tool

    space = Workspace(source, commit=commit)
    return space.offer(tests_tool(space, python=python, place=place))


def _no_workspace(repo: str) -> Workspace:
    """Stands for a workspace where no folder of repositories was named."""
    raise CloneError(f"{repo} is needed: name a folder of clones with get_suite(..., repos=FOLDER), or use clone=True")
