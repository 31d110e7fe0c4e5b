"""The results of a study, for reading: rows, tidy frames, and where they come from."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import nearest
from rlm_loop.study.compare.columns import Rows
from rlm_loop.study.compare.pair_keys import complete_and_incomplete, crash_sentence, pair_key
from rlm_loop.study.compare.summary import ArmSummary, summarize
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.fairness import FairnessCheck
from rlm_loop.study.store.archive import trace_of
from rlm_loop.study.store.reading import lock_of, read_fairness_check, read_rows
from rlm_loop.study.store.rows import Row, finished, frame_of, kind_of
from rlm_loop.traces.values import drawing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rlm_loop.study.compare.comparison import Comparison
    from rlm_loop.traces.reader import RunRecord


@dataclass(frozen=True)
class Results(Rows):
    """The rows of a study, one an episode, as run or as read back.

    `recorded` is true for results that were read from a folder instead of run by this process, `lock` is the
    study's `study.json`, `folder` where rows and traces lie.  Arms are compared only on pairs (model, suite,
    task, seed) that every arm was tried on: `complete_pairs` are their rows, `left_out` counts the others.  What a row
    counts as, `pair_keys.is_resolved` says: a crash of the arm is not resolved, one of the machine or the scorer is not
    scored.
    """

    folder: str = ""
    recorded: bool = False
    subset: str = ""
    """The choice of these rows from those of the study (`only`, `filter`); empty for all of them."""
    notes: Sequence[str] = ()
    """Notes on the reading of results of other tools."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def name(self) -> str:
        """The name of the study."""
        return str(self.lock.get("name", ""))

    @property
    def crashed(self) -> list[Row]:
        """The episodes that crashed; `run(..., retry_failed=True)` tries them again."""
        return [r for r in self.rows if not finished(r)]

    @property
    def crashes(self) -> str:
        """Say how many episodes of each arm crashed, and of what, in one sentence; empty where none did."""
        return crash_sentence(self.rows)

    @cached_property
    def complete_pairs(self) -> list[Row]:
        """The rows of the pairs that every arm was tried on, crashes included."""
        whole = set(complete_and_incomplete(self.rows)[0])
        return [r for r in self.rows if pair_key(r) in whole]

    @cached_property
    def left_out(self) -> int:
        """Count the pairs that are not compared because an arm has not been tried on them yet."""
        return len(complete_and_incomplete(self.rows)[1])

    def only(self, *arms: str) -> Results:
        """The same results with these arms alone.  Raises `StudyError` for an arm that is not there."""
        unknown = [a for a in arms if a not in self.arms]
        if unknown or not arms:
            raise StudyError(f"there is no arm {', '.join(unknown) or 'named'}; there are {', '.join(self.arms)}")
        return self.filter(arm=arms)

    def filter(self, **wanted: Any) -> Results:
        """The episodes that have these values: `filter(suite="tables", arm=["lean", "code"], resolved=False)`.

        The names are columns of `frame()`, factors included; a value is one, or a list of which each will do.  Arms
        are then compared on the pairs that are left.  Raises `StudyError` for a column or a value that is not there.
        """
        kept = _chosen([_tidy(row) for row in self.rows], wanted)
        chosen = ", ".join(f"{name}={value!r:.40}" for name, value in wanted.items())
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        return self if len(rows) == len(self.rows) else replace(self, rows=rows, subset=chosen)

    def plot(self, path: str | Path | None = None, **options: Any) -> Figure:
        """The figure of tasks resolved against tokens, saved where a `path` is given (`.png`, `.svg` or `.pdf`).

        `options` are those of `rlm_loop.report.resolve_against_tokens`.  A notebook shows what is returned.
        """
        made = drawing("rlm_loop.report.resolve_against_tokens")(self, **options)
        if path is not None:
            drawing("rlm_loop.report.save")(made, path)
        return made

    @property
    def provenance(self) -> dict[str, Any]:
        """The source of the numbers: models, seeds, first and last day, machines, commands."""
        sessions: list[Mapping[str, Any]] = list(self.lock.get("sessions", []))
        days = sorted(str(r["started"])[:10] for r in self.rows)
        return {
            "model": ", ".join(dict.fromkeys(r.get("model_name", r["model"]) for r in self.rows)),
            "seeds": list(self.lock.get("seeds", [])),
            "date": " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "",
            "machine": _distinct(s.get("machine") for s in sessions),
            "command": _distinct(s.get("command") for s in sessions),
        }

    def frame(self) -> pd.DataFrame:
        """A tidy frame, one row an episode; the fields are those of `results.jsonl`.

        `arm_base` is the arm without its factors, and each factor of the study is a column of its own.  `error_class`
        is there for results of before it was recorded as well.
        """
        return frame_of([_tidy(row) for row in self.rows])

    def summary(self, baseline: str | None = None) -> list[ArmSummary]:
        """Each arm on the tasks that all arms were tried on; `baseline` (the first arm by default) is compared with."""
        if baseline is not None and baseline not in self.arms:
            raise StudyError(f"there is no arm {baseline!r}; there are {', '.join(self.arms)}")
        return [s for model in self.models for s in self._summary(model, None, baseline)]

    def compare(self, baseline: str | None = None, **options: Any) -> Comparison:
        """Every arm against `baseline`, with intervals, tests and sentences: see `rlm_loop.study.compare`."""
        from rlm_loop.study.compare.comparison import compare  # which needs scipy

        return compare(self, baseline, **options)

    def by_arm(self, baseline: str | None = None) -> pd.DataFrame:
        """`summary` as a frame with one row an arm (and model, where there are several)."""
        frame = frame_of([asdict(s) for s in self.summary(baseline)])
        index = ["model", "arm"] if len(self.models) > 1 else ["arm"]
        return frame.set_index(index).drop(columns=list({"model", "suite"} - {*index})) if len(frame) else frame

    def suite_summary(self, baseline: str | None = None) -> list[ArmSummary]:
        """As `summary`, one for each suite and arm."""
        suites = dict.fromkeys(r["suite"] for r in self.rows)
        return [s for model in self.models for suite in suites for s in self._summary(model, suite, baseline)]

    def _summary(self, model: str, suite: str | None, baseline: str | None) -> list[ArmSummary]:
        rows = [r for r in self.complete_pairs if r["model"] == model and suite in (None, r["suite"])]
        return summarize(rows, self.arms, baseline or self.baseline, model=model, suite=suite or "")

    @property
    def fairness_check(self) -> FairnessCheck | None:
        """The differences of the arms as found before the study ran; `None` where that was not recorded."""
        return read_fairness_check(self.folder) if self.folder else None

    def trace(self, row: Row) -> RunRecord:
        """The trace of a row, from the study's folder or its packed traces."""
        return trace_of(self.folder, row)

    def __str__(self) -> str:
        kind = "recorded run" if self.recorded else "run"
        resolved = sum(bool(r["resolved"]) for r in self.rows)
        unknown = sum(r["resolved"] is None for r in self.rows)
        rest = f", {unknown} not judged" if unknown else ""
        return f"{self.name}: {kind} of {len(self)} episodes, {resolved} resolved, {len(self.crashed)} crashed{rest}"

    def _repr_html_(self) -> str:
        columns = ["n", "crashed", "resolved", "rate", "input_tokens", "output_tokens", "steps", "seconds"]
        shown = self.by_arm()
        table = shown[columns].round(2).to_html() if len(shown) else ""
        return f"<p>{html.escape(str(self))}</p>{table}"


def _chosen(rows: Sequence[Row], wanted: Mapping[str, Any]) -> list[bool]:
    """For each row whether it has, in every column that is named, the value that is wanted, or one of a list."""
    known = list(dict.fromkeys(name for row in rows for name in row))
    kept = [True] * len(rows)
    for name, value in wanted.items():
        if name not in known:
            raise StudyError(f"results have no column {name!r}{nearest(name, known)}; there are arm, suite, task ...")
        values = list(value) if isinstance(value, (list, tuple, set)) else [value]
        there = [row.get(name) for row in rows]
        if gone := [each for each in values if each not in there]:
            some = ", ".join(list(dict.fromkeys(map(repr, there)))[:8])
            raise StudyError(f"no episode has {name}={gone[0]!r}; there are {some} ...")
        kept = [keep and found in values for keep, found in zip(kept, there, strict=True)]
    return kept


def _tidy(row: Row) -> Row:
    factors = {name: value for name, value in row.get("factors", {}).items() if name not in row}
    return {**row, "arm_base": row.get("arm_base", row["arm"]), "error_class": kind_of(row), **factors}


def _distinct(values: Iterable[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value and value not in kept:
            kept.append(value)
    return kept


def load_study(folder: str | Path) -> Results:
    """The results of a study as recorded in a folder, loose or packed (`export`): tasks in the order of their first
    start, the arms of each as declared.

    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    found = Results(read_rows(folder), lock_of(folder), folder=str(folder), recorded=True)
    # chance, several jobs and episodes tried again mix the order of running
    tasks = _places((row["suite"], row["task"]) for row in found.rows)
    blocks = _places((row["model"], row["seed"]) for row in found.rows)
    arms = _places(found.arms)

    def place(row: Row) -> tuple[int, int, int]:
        return tasks[row["suite"], row["task"]], blocks[row["model"], row["seed"]], arms[row["arm"]]

    return replace(found, rows=sorted(found.rows, key=place))


def _places(values: Iterable[Any]) -> dict[Any, int]:
    return {value: n for n, value in enumerate(dict.fromkeys(values))}
