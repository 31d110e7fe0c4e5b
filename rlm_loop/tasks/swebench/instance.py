"""Instances of SWE-bench's schema (a repository at a commit, an issue, tests), and the judge of a patch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.workspace import Workspace

#: Columns of the schema that cannot be done without.
NEEDED = ("instance_id", "repo", "base_commit", "problem_statement")
#: The other columns that have a field of their own; whatever else a row has is kept in `more`.
OPTIONAL = ("patch", "test_patch", "hints_text", "created_at", "version", "environment_setup_commit")
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
#: In the order of the published sets.
_COLUMNS = (
    *("repo", "instance_id", "base_commit", "patch", "test_patch", "problem_statement", "hints_text", "created_at"),
    *("version", "FAIL_TO_PASS", "PASS_TO_PASS", "environment_setup_commit"),
)


@dataclass(frozen=True)
class Instance:
    """A row of SWE-bench's schema.

    `repo` is OWNER/NAME, `base_commit` what the agent starts from; `patch` is the reference solution and `test_patch`
    what brings the tests, both unified diffs that are never shown to a model.  `fail_to_pass` and `pass_to_pass` are
    the names of the tests, in the form of the repository's own runner.  `more` are the columns that only some
    data sets have, such as `image` and `eval_script`.
    """

    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str
    patch: str = ""
    test_patch: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    hints_text: str = ""
    created_at: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def row(self) -> dict[str, Any]:
        """The instance as a row of the schema; lists of tests are JSON text, as in the published sets."""
        own = {column: getattr(self, column.lower()) for column in _COLUMNS}
        return {**own, **{column: json.dumps(list(own[column])) for column in TESTS}, **self.more}


def read_instance(row: Mapping[str, Any], place: str) -> Instance:
    """The instance in a row.  Raises `SuiteFileError` that names the place and the column."""
    for column in NEEDED:
        if not isinstance(row.get(column), str) or not row[column].strip():
            wrong = f"must be a text that is not empty, not {row.get(column)!r:.60}"
            what = "is missing" if row.get(column) is None else wrong
            raise SuiteFileError(f"{place}: field {column!r} {what}")
    where = f"{place} ({row['instance_id']})"
    if not re.fullmatch(r"[0-9a-fA-F]{7,64}", row["base_commit"]):
        raise SuiteFileError(f"{where}: field 'base_commit' must be a commit's hash, not {row['base_commit']!r:.60}")
    if "/" in row["instance_id"] or row["instance_id"] in (".", ".."):
        raise SuiteFileError(f"{where}: field 'instance_id' must be a plain name, without a slash")
    return Instance(
        *(row[column] for column in NEEDED),
        **{column: _text(row.get(column), column, where) for column in OPTIONAL},
        fail_to_pass=read_tests(row.get("FAIL_TO_PASS"), "FAIL_TO_PASS", where),
        pass_to_pass=read_tests(row.get("PASS_TO_PASS"), "PASS_TO_PASS", where),
        more={column: value for column, value in row.items() if column not in _COLUMNS},
    )


def read_tests(value: Any, column: str, place: str) -> tuple[str, ...]:
    """A list of tests, given as a list or as JSON text; nothing or an empty text is no test."""
    if value is None or value == "":
        return ()
    read: Any = value
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError as error:
            raise SuiteFileError(
                f"{place}: field {column!r} is no list of tests: not JSON ({error}), beginning {value[:40]!r}"
            ) from None
    if not isinstance(read, list | tuple) or not all(isinstance(t, str) for t in cast("list[Any]", read)):
        raise SuiteFileError(f"{place}: field {column!r} must be a list of names of tests, not {value!r:.60}")
    return tuple(cast("list[str]", read))


def _text(value: Any, column: str, place: str) -> str:
    """A column that may be missing; versions and dates come as other types from some files."""
    if value is None or (isinstance(value, float) and value != value):  # NaN: a frame's empty cell
        return ""
    if isinstance(value, Mapping | list):
        raise SuiteFileError(f"{place}: field {column!r} must be a text, not {value!r:.60}")
    return str(cast("Any", value))


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
        patch = attempt.artifact
        if not isinstance(patch, str) or not patch.strip():
            return Score(False, 0.0, "empty patch: nothing was changed")
        if self.python is None:
            return Score(None, 0.0, NOT_EVALUATED)
        instance = self.instance
        if not instance.fail_to_pass:
            return Score(None, 0.0, f"not evaluated: {instance.instance_id} lists no FAIL_TO_PASS")
        foreign = [t for t in (*instance.fail_to_pass, *instance.pass_to_pass) if not _PYTEST.fullmatch(t)]
        if foreign:
            why = f"here only pytest's tests can be run, and {foreign[0][:60]!r} is none"
            return Score(None, 0.0, f"{NOT_EVALUATED}: {why}")
        from rlm_loop.workspace.evaluation import evaluate

        return evaluate(
            self.workspace,
            patch,
            fail_to_pass=instance.fail_to_pass,
            pass_to_pass=instance.pass_to_pass,
            test_patch=instance.test_patch,
            python=os.path.expanduser(self.python),
            timeout=_SECONDS,
        ).score()
