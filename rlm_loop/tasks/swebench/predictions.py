"""Predictions in the form that the official harness reads: one JSON object a line, of id, model and patch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tasks.jsonl import SuiteFileError, rows_of


@dataclass(frozen=True)
class Prediction:
    """A patch for an instance.  An empty `model_patch` says that the episode ended without a change."""

    instance_id: str
    model_name_or_path: str
    model_patch: str


@dataclass(frozen=True)
class Predictions:
    """Predictions, and the instances that have none (`left_out`: the reason by id)."""

    rows: tuple[Prediction, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the official JSONL and return the path.  Raises `SuiteFileError` for a name that the harness refuses.

        The text is ASCII: the readers of others open the file in the machine's own encoding.
        """
        target = Path(path)
        if target.suffix != ".jsonl":
            raise SuiteFileError(f"{path}: the harness reads JSON Lines; choose a name that ends in .jsonl")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(asdict(row)) + "\n" for row in self.rows), encoding="ascii")
        return target


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
    """The predictions in a file of JSON Lines; `null` is an empty patch.

    Stricter than the official reader, which keeps the last of two for one instance and finds a missing patch only
    when it is applied.  Raises `SuiteFileError` that names the line and the field.
    """
    found: dict[str, Prediction] = {}
    for row, place in rows_of(str(path)):
        given = {**row, "model_patch": row["model_patch"] or ""} if "model_patch" in row else row
        for name in ("instance_id", "model_name_or_path", "model_patch"):
            if not isinstance(given.get(name), str) or not (given[name].strip() or name == "model_patch"):
                raise SuiteFileError(f"{place}: field {name!r} must be a text, not {given.get(name)!r:.60}")
        prediction = Prediction(given["instance_id"], given["model_name_or_path"], given["model_patch"])
        if found.setdefault(prediction.instance_id, prediction) is not prediction:
            raise SuiteFileError(f"{place}: {prediction.instance_id} has a prediction before; keep one")
    if not found:
        raise SuiteFileError(f"{path}: there is no prediction in it")
    return tuple(found.values())
