"""Instances as tasks: the question is the issue, the workspace the repository at its commit, the artifact a diff."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.models.weights import cache_folder
from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.instance import Instance, read_instances, select
from rlm_loop.workspace import Workspace, WorkspaceError, sources
from rlm_loop.workspace.evaluation import evaluate
from rlm_loop.workspace.git import Git, mirror

NOT_EVALUATED = "not evaluated; run `rlm-loop swebench evaluate`"
_SECONDS = 1800.0  # for one run of the tests
_PYTEST = re.compile(r"[^\s:]+\.py(::.+)?", re.DOTALL)


class CloneError(ValueError):
    """A repository, or a commit of it, that is not there; the message is one line that says what to do."""


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


def clone_of(name: str, folder: Path, url: str = "") -> Git:
    """Return the clone of `OWNER/NAME` in a folder: a checkout or a bare mirror called `OWNER__NAME` or `NAME`, with or
    without `.git`.

    Where there is none, a bare mirror is made of `url`, if that is given; it appears under its name only when it is
    complete.  Raises `CloneError` that says what was looked for.
    """
    wanted = folder / name.replace("/", "__")
    found = [p for p in (wanted, folder / name.rpartition("/")[2]) for p in (p, p.with_name(f"{p.name}.git"))]
    path = next((p for p in found if p.is_dir()), None)
    try:
        if path is None and url:
            path, part = found[1], wanted.with_name(f".{wanted.name}.part")
            shutil.rmtree(part, ignore_errors=True)  # of a clone that was interrupted
            folder.mkdir(parents=True, exist_ok=True)
            mirror(url, part)
            part.rename(path)
        git = None if path is None else sources.find(path.resolve())
    except WorkspaceError as error:
        raise CloneError(f"there is no clone of {name} in {folder}, and none could be made: {error}") from None
    if git is None:
        how = f"put one there with `git clone --mirror https://github.com/{name}.git {wanted}.git`, or use clone=True"
        raise CloneError(f"there is no clone of {name} in {folder}: {how}")
    return git


def need(git: Git, commit: str, why: str) -> None:
    """Raise `CloneError` that says how to get it, if the commit is not in a clone."""
    try:
        git("cat-file", "-e", f"{commit}^{{tree}}")
    except WorkspaceError:
        how = f"run `git fetch origin {commit}` in it"
        raise CloneError(f"{why}: the clone {git.folder} has no commit {commit[:12]}; {how}") from None


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
        facts={"repo": instance.repo, "base_commit": instance.base_commit},
    )


def _no_workspace(repo: str) -> Workspace:
    """Stand for a workspace where no folder of repositories was named."""
    raise CloneError(f"{repo} is needed: name a folder of clones with get_suite(..., repos=FOLDER), or use clone=True")


@dataclass(frozen=True)
class InstanceScorer:
    """Judges patches for one instance; an attempt is judged by its artifact, the diff.

    Without `python` nothing is run and the score's `resolved` is `None`: it is the official harness that has to say.
    """

    instance: Instance
    workspace: Callable[[], Workspace] = field(repr=False)
    python: str | None = None

    def __call__(self, attempt: Attempt) -> Score:
        patch, instance = attempt.artifact, self.instance
        if not isinstance(patch, str) or not patch.strip():
            return Score(False, 0.0, "empty patch: nothing was changed")
        if self.python is None:
            return Score(None, 0.0, NOT_EVALUATED)
        if not instance.fail_to_pass or not all(
            map(_PYTEST.fullmatch, (*instance.fail_to_pass, *instance.pass_to_pass))
        ):
            return Score(None, 0.0, f"{NOT_EVALUATED}: here only pytest's tests can be run")
        return evaluate(
            self.workspace,
            patch,
            fail_to_pass=instance.fail_to_pass,
            pass_to_pass=instance.pass_to_pass,
            test_patch=instance.test_patch,
            python=os.path.expanduser(self.python),
            timeout=_SECONDS,
        ).score()
