"""Why a run made no patch that resolves its task: one class for each run, by exact rules.

The rules look at the trace's events, the patch, the score, and the files that the reference patch changes.  How far
the run got (`progress`) and how it ended (`ending`) are kept apart; `label` is one of both, for tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from rlm_loop.agents.attempts.evidence import ActionStep, failed_edit, patch_of, steps_of
from rlm_loop.agents.past_run import outcome_of
from rlm_loop.outcome import Outcome, Score, Stop
from rlm_loop.tasks.base import Task
from rlm_loop.traces.reader import RunRecord

Progress = Literal[
    "resolved",
    "never_found",  # none of the true files' lines was shown, and none was edited
    "not_edited",  # shown, and no edit was tried
    "edit_rejected",  # edits were tried, and none of them changed a file
    "undone",  # edits changed files, and at the end nothing differs from the start
    "other_files",  # the patch touches none of the true files
    "broke_others",  # the tests to be fixed pass, and others no longer do
    "wrong_fix",  # the patch touches a true file, and does not resolve the task
]
Ending = Literal["answered", "ran_out", "repeated", "malformed", "tool_failures", "gave_up", "crashed"]
Label = Progress | Ending

_ENDINGS: Mapping[Stop, Ending] = {
    Stop.ANSWERED: "answered",
    Stop.STEPS: "ran_out",
    Stop.SECONDS: "ran_out",
    Stop.TOKENS: "ran_out",
    Stop.COST: "ran_out",
    Stop.CALLS: "ran_out",
    Stop.REPEATED: "repeated",
    Stop.MALFORMED: "malformed",
    Stop.TOOL_FAILURES: "tool_failures",
    Stop.BLOCKED: "gave_up",
    Stop.INTERRUPTED: "crashed",
    Stop.FAILED: "crashed",
}
#: How a run ended says more than how far it got, where it tried no edit at all.
_TELLING: Mapping[Progress, tuple[Ending, ...]] = {
    "never_found": ("repeated", "malformed", "tool_failures", "gave_up"),
    "not_edited": ("repeated", "malformed", "tool_failures", "gave_up", "ran_out"),
}


@dataclass(frozen=True)
class PatchDiagnosis:
    """`label` is the class; `limit` which limit was reached where the run ran out.

    The rest is what it was decided by: whether a true file was `found`, how many edits were `tried` and `rejected`,
    the files of the patch, and the true ones (empty: not known, then a file counts as found and as a true one).
    """

    label: Label
    progress: Progress
    ending: Ending
    limit: str = ""
    found: bool = False
    tried: int = 0
    rejected: int = 0
    touched: tuple[str, ...] = ()
    true_files: tuple[str, ...] = ()


def diagnose(task: Task, run: RunRecord | Outcome, score: Score) -> PatchDiagnosis:
    """Classify one run by its trace (or outcome) and the score of its patch.

    `crashed` comes first, and `resolved` second; then: what is wrong with the patch where there is one
    (`other_files`, `broke_others`, `wrong_fix`), or with the edits (`edit_rejected`, `undone`).  A run that tried no
    edit is `never_found` or `not_edited`; but where the model's own conduct ended it, that is the class (`repeated`,
    `malformed`, `tool_failures`, `gave_up`), and one that had found the file and reached a limit has `ran_out`.
    """
    outcome = outcome_of(run) if isinstance(run, RunRecord) else run
    steps = steps_of(outcome.turns)
    true, ending = true_files(task), _ENDINGS[outcome.stop]
    touched = patched_files(patch_of(outcome))
    tried = [step for step in steps if step.edits]
    rejected = [step for step in tried if failed_edit(step)]
    found, changed = found_file(steps, true), any(step.changed for step in steps)
    progress = _progress(score, task, touched, true, bool(tried), changed, found)
    label: Label = progress
    if ending == "crashed" or ending in _TELLING.get(progress, ()):
        label = ending
    limit = str(outcome.stop) if ending == "ran_out" else ""
    return PatchDiagnosis(label, progress, ending, limit, found, len(tried), len(rejected), touched, true)


def _progress(
    score: Score, task: Task, touched: Sequence[str], true: Sequence[str], tried: bool, changed: bool, found: bool
) -> Progress:
    if score.resolved:
        return "resolved"
    if touched:
        if true and not set(true) & set(touched):
            return "other_files"
        return "broke_others" if only_others_fail(score, task.facts) else "wrong_fix"
    if changed:
        return "undone"
    if tried:
        return "edit_rejected"
    return "not_edited" if found else "never_found"


def true_files(task: Task) -> tuple[str, ...]:
    """The files that the reference changes: `facts["file"]` or `facts["files"]`, else those of a reference patch.

    The patch is `facts["patch"]`, or `expected` where that is one.  Empty where nothing says so.
    """
    facts = task.facts
    if isinstance(facts.get("file"), str):
        return (facts["file"],)
    if isinstance(facts.get("files"), (list, tuple)):
        return tuple(str(name) for name in cast("Iterable[Any]", facts["files"]))
    patch = facts.get("patch") or task.expected
    return patched_files(patch) if isinstance(patch, str) else ()


_SAME = re.compile(r"^diff --git (?P<old>\"?)a/(?P<name>.*?)(?P=old) (?P=old)b/(?P=name)(?P=old)$")
_RENAME = re.compile(r"^rename (?:from|to) (?P<quote>\"?)(?P<name>.*)(?P=quote)$")


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a git patch changes, adds, removes or renames, in order."""
    matches = [match for line in patch.split("\n") for match in (_SAME.match(line), _RENAME.match(line)) if match]
    return tuple(dict.fromkeys(_unquoted(match["name"], line=match.string) for match in matches))


def _unquoted(name: str, line: str) -> str:
    """A name as it is: git writes odd ones in quotes, with their bytes as octal numbers."""
    if not line.endswith('"'):
        return name
    return (
        name.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
    )


def found_file(steps: Iterable[ActionStep], true: Sequence[str]) -> bool:
    """Whether lines of a true file were shown: a reply's action named it and worked, or a result holds `file:line`."""
    return any(step.shows(name) for step in steps for name in true) if true else any(step.worked for step in steps)


def only_others_fail(score: Score, facts: Mapping[str, Any]) -> bool:
    """Whether all tests to be fixed pass and others do not, by the score's evidence.

    `evidence["broke_others"]` says it, as `evaluation.evaluate` found it; else `evidence["tests"]`, the result of each
    test, with `facts["fail_to_pass"]`, the names of those to be fixed.  False where neither is known.
    """
    if score.evidence.get("broke_others") is True:
        return True
    tests: object = score.evidence.get("tests")
    wanted: object = facts.get("fail_to_pass")
    if not isinstance(tests, Mapping) or not isinstance(wanted, (list, tuple)):
        return False
    results = cast("Mapping[str, str]", tests)
    fixed = all(results.get(str(name)) == "passed" for name in cast("Iterable[Any]", wanted))
    return fixed and any(result != "passed" for result in results.values())
