"""Predictions in the form that the official harness reads: one JSON object a line, of id, model and patch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tasks.base import Task
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.source_rows import rows_of
from rlm_loop.traces.redact import redact

FIELDS = ("instance_id", "model_name_or_path", "model_patch")
#: What becomes of an episode that did not come to an end: it is left out, or written as an empty patch.
Crashed = Literal["leave out", "empty"]


@dataclass(frozen=True)
class Prediction:
    """A patch for an instance.  An empty `model_patch` says that the episode ended without a change."""

    instance_id: str
    model_name_or_path: str
    model_patch: str

    def row(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Predictions:
    """Predictions, and the instances that have none (`left_out`: the reason by id)."""

    rows: tuple[Prediction, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    def __len__(self) -> int:
        return len(self.rows)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the official JSONL in one step; returns the path.  Raises `SuiteFileError` where that cannot be.

        The text is ASCII: the readers of others open the file in the machine's own encoding.
        """
        target = Path(path)
        if target.suffix != ".jsonl":
            what = "the harness reads predictions from files of JSON Lines"
            raise SuiteFileError(f"{path}: {what}; choose a name that ends in .jsonl")
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            part.write_text("".join(json.dumps(p.row()) + "\n" for p in self.rows), encoding="ascii")
            os.replace(part, target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise SuiteFileError(f"cannot write {path}: {error.strerror}; choose another path") from None
        return target


def predictions_of(
    outcomes: Mapping[str, Outcome] | Iterable[tuple[Task | str, Outcome]],
    model: str = "",
    *,
    crashed: Crashed = "leave out",
) -> Predictions:
    """The predictions of runs: outcomes by instance id, or in pairs with their task.

    `model` is the name that stands in every row (default: the outcome's agent and model).  A run that failed or was
    interrupted says nothing about what the agent can do, so it is left out unless `crashed="empty"`.  So is a patch
    that adds what looks like a secret: predictions are published.
    """
    listed: Any = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
    pairs = cast("Iterable[tuple[Task | str, Outcome]]", listed)
    kept: dict[str, Prediction] = {}
    left: dict[str, str] = {}
    for task, outcome in pairs:
        name = task if isinstance(task, str) else task.id
        if name in kept or name in left:
            what = f"there are two outcomes for {name}"
            raise SuiteFileError(f"{what}; a file of predictions holds one patch an instance")
        patch, why = patch_of(outcome)
        if patch is None and crashed == "empty":
            patch = ""
        added = "\n".join(line for line in (patch or "").split("\n") if line.startswith("+"))
        if redact(added) != added:  # the other lines are the repository's own
            left[name] = "its patch adds what looks like a key or a password; write it by hand if it is none"
        elif patch is None:
            left[name] = why
        else:
            kept[name] = Prediction(name, model or model_name(outcome.agent, outcome.model), patch)
    return Predictions(tuple(kept.values()), left)


def patch_of(outcome: Outcome) -> tuple[str | None, str]:
    """The patch of a run, or `None` and why there is none."""
    if outcome.stop in (Stop.FAILED, Stop.INTERRUPTED):
        how = "crashed" if outcome.stop == Stop.FAILED else "was interrupted"
        return None, f"the run {how}: {outcome.reason}"[:300]
    if not isinstance(outcome.artifact, str):
        return None, "the run has no diff: its task had no workspace"
    return outcome.artifact, ""


def model_name(*parts: str) -> str:
    """A name for `model_name_or_path`, which the harness uses in the names of files."""
    return re.sub(r"[^A-Za-z0-9.+_-]+", "_", "__".join(p for p in ("rlm-loop", *parts) if p))


def read_predictions(path: str | os.PathLike[str]) -> tuple[Prediction, ...]:
    """The predictions in a JSONL file, or in a JSON list or object of them by id.

    Stricter than the official reader, which keeps the last of two for one instance and finds a missing patch only
    when it is applied.  Raises `SuiteFileError` that names the line and the field.
    """
    file = Path(path).expanduser()
    if file.suffix not in (".jsonl", ".json"):
        raise SuiteFileError(f"{file}: predictions are read from .jsonl or .json")
    seen: dict[str, str] = {}
    found: list[Prediction] = []
    for row, place in rows_of(str(file)):
        for name in FIELDS:
            value = row.get(name)
            if name == "model_patch" and name in row and value is None:
                continue  # how some write that there is no patch
            if not isinstance(value, str) or (name != "model_patch" and not value.strip()):
                raise SuiteFileError(f"{place}: field {name!r} must be a text, not {value!r:.60}")
        prediction = Prediction(row["instance_id"], row["model_name_or_path"], row["model_patch"] or "")
        before = seen.setdefault(prediction.instance_id, place)
        if before != place:
            raise SuiteFileError(f"{place}: {prediction.instance_id} has a prediction in {before} too; keep one")
        found.append(prediction)
    if not found:
        raise SuiteFileError(f"{path}: there is no prediction in it")
    return tuple(found)
