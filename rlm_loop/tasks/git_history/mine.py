"""Going through a history: which commits become tasks, and why the others do not."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.tasks.base import Suite
from rlm_loop.tasks.clones import Clone, CloneError, own_folder
from rlm_loop.tasks.git_history.commits import (
    FIX,
    Commit,
    Issues,
    Statement,
    commits,
    is_test,
    is_test_module,
    patch,
    statement_of,
)
from rlm_loop.tasks.git_history.probe import Probed, Prober, Split
from rlm_loop.tasks.swebench.instance import Instance
from rlm_loop.tasks.swebench.suite import task_of
from rlm_loop.workspace.objects import ABSENT, SUBMODULE, differences

if TYPE_CHECKING:
    from rlm_loop.workspace.testing import Isolation

#: Commits whose tests could not be run, before the interpreter is taken to be the wrong one.
_PATIENCE = 5


class GitHistoryError(ValueError):
    """No task can be made of a history; the message is one line that says what to do."""


@dataclass(frozen=True)
class MinedHistory:
    """What a history holds: instances, newest first, and the commits that became none, with the reason."""

    instances: tuple[Instance, ...]
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])


def from_git_history(
    repo: str | os.PathLike[str],
    *,
    python: str | None = None,
    test_timeout: float = 300.0,
    place: Isolation = "auto",
    instruction: str = "",
    run_tests: bool = False,
    **options: Any,
) -> Suite:
    """A suite of past fixes; the options are those of `mine`.

    `python` is the interpreter of an environment with what the tests need (default: this one), both for finding out
    which tests tell a fix and for judging attempts; `test_timeout` is in seconds, for one run of a commit's tests, and
    `place` is where they run (see `testing.Isolation`).
    `instruction` is put before each question; with `run_tests` the model may run the tests that are there.

    Raises `GitHistoryError` and `CloneError` (both `ValueError`).
    """
    found = mine(repo, python=python, test_timeout=test_timeout, place=place, **options)
    clone = Clone.at(repo)
    if not found.instances:
        raise GitHistoryError(_nothing(clone, found.skipped))
    judged: dict[str, Any] = {"python": python or sys.executable, "timeout": test_timeout, "place": place}
    judged |= {"run_tests": run_tests, "instruction": instruction, "tag": "history"}
    tasks = [task_of(i, {i.repo: clone}, **judged) for i in found.instances]
    said = f"{len(found.instances)} of {len(found.instances) + len(found.skipped)} fixes of {clone.path.name}"
    return Suite(f"history:{clone.name}", tuple(tasks), said)


def mine(
    repo: str | os.PathLike[str],
    *,
    max: int = 20,
    since: str | None = None,
    paths: Sequence[str] = (),
    rev: str = "HEAD",
    match: str | None = FIX,
    merges: bool = False,
    statement: Statement = "message",
    issues: Issues | None = None,
    python: str | None = None,
    test_timeout: float = 300.0,
    place: Isolation = "auto",
    cache: str | os.PathLike[str] | None = "",
    progress: bool | Callable[[str], None] = True,
) -> MinedHistory:
    """At most `max` instances of a local repository's history, newest first.

    `since`, `paths`, `rev` and `merges` say which commits are looked at (see `commits`), `match` is a pattern that the
    message has to have (`None`: any).  `statement` and `issues` make the problem statement (see `statement_of`).
    A commit has to change a Python file of the source and a module of tests.  What the tests did is kept in the folder
    `cache` (default: the user's cache; `None`: nowhere) by commit, so a call that was stopped goes on where it was.
    `progress` is told a line a commit (true: on standard error).

    The repository is only read: tests run in throw-away checkouts.  Raises `CloneError` for what is no repository, and
    `GitHistoryError` where the tests of the first commits cannot be run at all.
    """
    clone, python = Clone.at(repo), python and os.path.expanduser(python)
    folder = own_folder("git-history") if cache == "" else None if cache is None else Path(cache)
    prober = Prober(clone, python=python, timeout=test_timeout, cache=folder, place=place)
    tell = progress if callable(progress) else partial(print, file=sys.stderr, flush=True)
    name = clone.name
    found: list[Instance] = []
    skipped: dict[str, str] = {}
    try:
        only = [paths] if isinstance(paths, str) else paths
        listed = list(commits(clone, rev=rev, since=since, paths=only, match=match, merges=merges))
    except CloneError as error:
        if "unknown revision" in str(error) or "bad revision" in str(error):
            raise GitHistoryError(
                f"{clone.path} has no commit {rev!r}; commit something, or name another rev"
            ) from None
        raise
    tried = unrunnable = 0
    for number, commit in enumerate(listed, 1):
        if len(found) >= max:
            break
        split, reason = _split(clone, commit)
        if split is None:
            skipped[commit.sha] = reason
            continue
        known = prober.known(commit, split)
        probed = known or prober.probe(commit, split)
        tried, unrunnable = tried + 1, unrunnable + (not probed.ran)
        if tried == unrunnable >= _PATIENCE:
            raise GitHistoryError(
                f"the tests of {unrunnable} commits could not be run with {python or sys.executable} "
                f"({probed.reason.partition(': ')[2][:200]}); name an interpreter that has their dependencies (python=)"
            )
        if probed.reason:
            skipped[commit.sha] = probed.reason
        else:
            found.append(_instance(name, commit, split, probed, statement_of(commit, statement, issues)))
        if progress:
            tell(f"[{number}/{len(listed)}] {_line(commit, probed, kept=known is not None)}")
    return MinedHistory(tuple(found), skipped)


def _split(clone: Clone, commit: Commit) -> tuple[Split | None, str]:
    """The two parts of a commit's change, or why it cannot be a task."""
    if not commit.parent:
        return None, "it has no parent here"
    if not clone.has(commit.parent):
        return None, "its parent is not in this shallow clone"
    changed = differences(clone.raw, commit.parent, commit.sha)
    tests = [path for path in changed if is_test(path)]
    source = [path for path in changed if not is_test(path)]
    modules = tuple(path for path in tests if is_test_module(path) and changed[path][1].mode != ABSENT)
    if any(SUBMODULE in (old.mode, new.mode) for old, new in changed.values()):
        return None, "it changes a submodule"
    if not modules:
        return None, "it changes no module of tests"
    if not any(path.endswith(".py") for path in source):
        return None, "it changes no Python source besides tests"
    try:
        mended, tested = (patch(clone, commit, part) for part in (source, tests))
    except UnicodeError:
        return None, "its change is no UTF-8 text"
    return Split(mended, tested, modules), ""


def _instance(repo: str, commit: Commit, split: Split, probed: Probed, statement: str) -> Instance:
    return Instance(
        instance_id=f"{repo.replace('/', '__')}-{commit.sha[:12]}",
        repo=repo,
        base_commit=commit.parent,
        problem_statement=statement,
        patch=split.source,
        test_patch=split.tests,
        fail_to_pass=probed.fail_to_pass,
        pass_to_pass=probed.pass_to_pass,
        created_at=commit.date,
        more={"fix_commit": commit.sha},
    )


def _nothing(clone: Clone, skipped: Mapping[str, str]) -> str:
    hint = "; the clone is shallow: `git fetch --unshallow` brings the rest" if clone.shallow else ""
    if not skipped:
        return (
            f"{clone.path} has no commit that matches; widen since, paths or match (match=None takes any message){hint}"
        )
    counts = Counter(reason.partition(":")[0] for reason in skipped.values()).most_common(3)
    why = ", ".join(f"{n} x {reason}" for reason, n in counts)
    return f"none of {len(skipped)} commits of {clone.path} makes a task ({why}); widen since, paths or match{hint}"


def _line(commit: Commit, probed: Probed, *, kept: bool) -> str:
    what = probed.reason or f"{len(probed.fail_to_pass)} fail to pass, {len(probed.pass_to_pass)} pass to pass"
    return f"{commit.sha[:12]} {commit.subject[:60]}: {what} ({'kept' if kept else f'{probed.seconds:.1f} s'})"
