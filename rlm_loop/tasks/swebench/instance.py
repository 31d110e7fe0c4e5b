"""Instances of SWE-bench's schema (a repository at a commit, an issue, tests), and the judge of a patch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation import evaluate

#: Columns that cannot be done without: the pattern of their text, and what it is.
_NEEDED = {
    "instance_id": (r"[^/]*[^/.][^/]*", "a plain name, without a slash"),
    "repo": (r"[^/]+/[^/]+", "OWNER/NAME"),
    "base_commit": (r"[0-9a-fA-F]{7,64}", "a commit's hash"),
    "problem_statement": (r".*\S.*", "a text that is not empty"),
}


@dataclass(frozen=True)
class Instance:
    """A row of SWE-bench's schema.

    `repo` is OWNER/NAME, `base_commit` what the agent starts from; `patch` is the reference solution and `test_patch`
    what brings the tests, both unified diffs that are never shown to a model.  `fail_to_pass` and `pass_to_pass` are
    the names of the tests, in the form of the repository's own runner.  `row` has all columns as they came.
    """

    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str
    patch: str
    test_patch: str
    hints_text: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    row: Mapping[str, Any] = field(compare=False, repr=False)


def read_instance(row: Mapping[str, Any], place: str) -> Instance:
    """Return the instance in a row.  Raises `SuiteFileError` that names the place and the column."""
    for column, (pattern, what) in _NEEDED.items():
        if not isinstance(row.get(column), str) or not re.fullmatch(pattern, row[column], re.DOTALL):
            raise SuiteFileError(f"{place}: field {column!r} must be {what}, not {row.get(column)!r:.60}")
    return Instance(
        *(row[column] for column in _NEEDED),
        *(str(row.get(column) or "") for column in ("patch", "test_patch", "hints_text")),
        *(_tests(row.get(column) or (), column, place) for column in ("FAIL_TO_PASS", "PASS_TO_PASS")),
        row=row,
    )


def _tests(value: Any, column: str, place: str) -> tuple[str, ...]:
    """The names of tests in a list, or in the JSON text of one."""
    try:
        names: Any = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):  # pyright: ignore
        raise SuiteFileError(f"{place}: field {column!r} must be a list of names of tests, not {value!r:.60}")
    return tuple(names)  # pyright: ignore


NOT_EVALUATED = "not evaluated; run `rlm-loop swebench evaluate`"
_SECONDS = 1800.0  # for one run of the tests
_PYTEST = re.compile(r"[^\s:]+\.py(::.+)?", re.DOTALL)


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
