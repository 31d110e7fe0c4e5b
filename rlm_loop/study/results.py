"""The results of a study, for reading: rows, tidy frames, and where they come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import nearest
from rlm_loop.study.compare.pair_keys import PairKey, complete_and_incomplete, crash_sentence, pair_key
from rlm_loop.study.compare.summary import ArmSummary, summarize
from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.frames import frame_of
from rlm_loop.study.store.reading import every_row, latest, read_lock
from rlm_loop.study.store.rows import Row, class_of, finished
from rlm_loop.traces.display import drawing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rlm_loop.study.compare.comparison import Comparison
    from rlm_loop.study.plan.fairness_check import FairnessCheck
    from rlm_loop.traces.reader import RunRecord

__all__ = ["PairKey", "Results", "pair_key"]

#: The figures of a study by the names that `plot` has for them.
PLOTS = {
    "tokens": "resolve_against_tokens",
    "rates": "resolve_rates",
    "differences": "paired_differences",
    "causes": "stacked_causes",
}


@dataclass(frozen=True)
class Results:
    """One row an episode, as run or as read back.

    `recorded` is true for results that were read from a folder instead of run by this process, `lock` is the
    study's `study.json`, `folder` where rows and traces lie.  Arms are compared only on pairs (model, suite,
    task, seed) that every arm was tried on: `complete_pairs` are their rows, `left_out` counts the others.  What a row
    counts as, `pair_keys.is_resolved` says: a crash of the arm is not resolved, one of the machine or the scorer is not
    scored.
    """

    rows: Sequence[Row]
    lock: Mapping[str, Any] = field(default_factory=dict[str, Any])
    folder: str = ""
    recorded: bool = False
    subset: str = ""
    """How these rows were chosen from those of the study (`only`, `filter`); empty for all of them."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def name(self) -> str:
        return str(self.lock.get("name", ""))

    @cached_property
    def arms(self) -> list[str]:
        """The arms that have rows, in the order of the study (rows of several jobs come in any order)."""
        there = {r["arm"] for r in self.rows}
        declared = [arm for s in self.lock.get("sessions", ()) for arm in s.get("arms", ()) if arm in there]
        return _ordered([*declared, *(r["arm"] for r in self.rows)])

    @property
    def baseline(self) -> str:
        """The arm that the study declared to compare with, where it has rows; else the first."""
        declared = (self.lock.get("analysis") or {}).get("baseline")
        if not self.rows:
            raise StudyError("the study has no episode yet: run it first")
        return declared if declared in self.arms else self.arms[0]

    @cached_property
    def models(self) -> list[str]:
        return _ordered(r["model"] for r in self.rows)

    @property
    def crashed(self) -> list[Row]:
        """The episodes that crashed; `run(..., retry_failed=True)` tries them again."""
        return [r for r in self.rows if not finished(r)]

    @property
    def crashes(self) -> str:
        """How many episodes of each arm crashed, and of what, in one sentence; empty where none did."""
        return crash_sentence(self.rows)

    @cached_property
    def complete_pairs(self) -> list[Row]:
        """The rows of the pairs that every arm was tried on, crashes included."""
        whole = set(complete_and_incomplete(self.rows)[0])
        return [r for r in self.rows if pair_key(r) in whole]

    @cached_property
    def left_out(self) -> int:
        """How many pairs are not compared because an arm has not been tried on them yet."""
        return len(complete_and_incomplete(self.rows)[1])

    def only(self, *arms: str) -> Results:
        """The same results with these arms alone.  Raises `StudyError` for an arm that is not there."""
        unknown = [a for a in arms if a not in self.arms]
        if unknown or not arms:
            raise StudyError(f"there is no arm {', '.join(unknown) or 'named'}; there are {', '.join(self.arms)}")
        if set(arms) == set(self.arms):
            return self
        return replace(self, rows=[r for r in self.rows if r["arm"] in arms], subset=f"arms {', '.join(arms)}")

    def filter(self, **wanted: Any) -> Results:
        """The episodes that have these values: `filter(suite="tables", arm=["lean", "code"], resolved=False)`.

        The names are columns of `frame()`, factors included; a value is one, or a list of which each will do.  Arms
        are then compared on the pairs that are left.  Raises `StudyError` for a column or a value that is not there.
        """
        kept = _chosen([_tidy(row) for row in self.rows], wanted)
        chosen = ", ".join(f"{name}={value!r:.40}" for name, value in wanted.items())
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        return self if len(rows) == len(self.rows) else replace(self, rows=rows, subset=chosen)

    def plot(self, path: str | Path | None = None, kind: str = "tokens", **options: Any) -> Figure:
        """A figure, saved where a `path` is given (`.png`, `.svg` or `.pdf`; without an ending PNG and SVG).

        `kind` is `tokens` (tasks resolved against tokens), `rates`, `differences` or `causes`; `options` are those of
        the function of that figure (docs/reports.md).  A notebook shows what is returned.  Raises `StudyError` for
        another kind, and where there is nothing to draw.
        """
        if kind not in PLOTS:
            raise StudyError(f"there is no plot {kind!r}{nearest(kind, PLOTS)}; there are {', '.join(PLOTS)}")
        made = drawing(f"rlm_loop.report.{PLOTS[kind]}")(self, **options)
        if path is not None:
            drawing("rlm_loop.report.save")(made, path)
        return made

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from: study, models, seeds, first and last day, machines, packages, commands."""
        sessions: list[Mapping[str, Any]] = list(self.lock.get("sessions", []))
        days = sorted(str(r["started"])[:10] for r in self.rows)
        return {
            "study": self.name,
            "model": ", ".join(_ordered(r.get("model_name", r["model"]) for r in self.rows)),
            "seeds": list(self.lock.get("seeds", [])),
            "date": " to ".join(_ordered([days[0], days[-1]])) if days else "",
            "machine": _distinct(s.get("machine") for s in sessions),
            "packages": _distinct(s.get("packages") for s in sessions),
            "command": _distinct(s.get("command") for s in sessions),
            "episodes": len(self.rows),
            "recorded": self.recorded,
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
        return frame.set_index(index).drop(columns=["suite", *({"model"} - set(index))]) if len(frame) else frame

    def suite_summary(self, baseline: str | None = None) -> list[ArmSummary]:
        """As `summary`, one for each suite and arm."""
        suites = _ordered(r["suite"] for r in self.rows)
        return [s for model in self.models for suite in suites for s in self._summary(model, suite, baseline)]

    def by_suite(self, baseline: str | None = None) -> pd.DataFrame:
        """`suite_summary` as a frame with one row a suite and arm."""
        frame = frame_of([asdict(s) for s in self.suite_summary(baseline)])
        index = ["model", "suite", "arm"] if len(self.models) > 1 else ["suite", "arm"]
        return frame.set_index(index).drop(columns=list({"model"} - set(index))) if len(frame) else frame

    def _summary(self, model: str, suite: str | None, baseline: str | None) -> list[ArmSummary]:
        rows = [r for r in self.complete_pairs if r["model"] == model and suite in (None, r["suite"])]
        return summarize(rows, self.arms, baseline or self.baseline, model=model, suite=suite or "")

    @property
    def fairness_check(self) -> FairnessCheck | None:
        """In what the arms differ, as it was found before the study ran; `None` where that was not recorded."""
        from rlm_loop.study.store.reading import read_fairness_check

        return read_fairness_check(self.folder) if self.folder else None

    def trace(self, row: Row) -> RunRecord:
        """The trace of a row, from the study's folder or its packed traces."""
        from rlm_loop.study.store.archive import read_trace

        return read_trace(self.folder, row["trace"], run=row.get("trace_run") or None)

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
        return f"<p>{_escape(str(self))}</p>{table}"


def _chosen(rows: Sequence[Row], wanted: Mapping[str, Any]) -> list[bool]:
    """For each row whether it has, in every column that is named, the value that is wanted, or one of a list."""
    known = list(dict.fromkeys(name for row in rows for name in row))
    kept = [True] * len(rows)
    for name, value in wanted.items():
        if name not in known:
            raise StudyError(f"results have no column {name!r}{nearest(name, known)}; there are arm, suite, task ...")
        values = list(value) if isinstance(value, Collection) and not isinstance(value, (str, Mapping)) else [value]
        there = [row.get(name) for row in rows]
        for each in values:
            if each not in there:
                some = ", ".join(list(dict.fromkeys(map(repr, there)))[:8])
                raise StudyError(f"no episode has {name}={each!r}; there are {some} ...")
        kept = [keep and found in values for keep, found in zip(kept, there, strict=True)]
    return kept


def _tidy(row: Row) -> Row:
    base = {
        "arm_base": row.get("arm_base", row["arm"]),
        "error_class": row.get("error_class") or class_of(row["error"]),
    }
    return {**row, **base, **{name: value for name, value in row.get("factors", {}).items() if name not in row}}


def _ordered(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _distinct(values: Iterable[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value and value not in kept:
            kept.append(value)
    return kept


def _escape(text: str) -> str:
    import html

    return html.escape(text)


def results_of(folder: str | Path, *, recorded: bool) -> Results:
    """The results in a folder: tasks in the order of their first start, the arms of each as declared."""
    lock = read_lock(folder)
    if lock is None:
        raise StudyError(no_study(folder))
    unsorted = Results(latest(every_row(folder)), lock, str(folder), recorded)
    return replace(unsorted, rows=_in_order(unsorted.rows, unsorted.arms))


def _in_order(rows: Sequence[Row], arms: Sequence[str]) -> list[Row]:
    """Rows by task, block and arm: chance, several jobs and episodes tried again mix the order of running."""
    tasks: dict[tuple[str, str], int] = {}
    blocks: dict[tuple[str, int], int] = {}
    for row in rows:
        tasks.setdefault((row["suite"], row["task"]), len(tasks))
        blocks.setdefault((row["model"], row["seed"]), len(blocks))
    place = {arm: n for n, arm in enumerate(arms)}
    return sorted(
        rows,
        key=lambda r: (tasks[r["suite"], r["task"]], blocks[r["model"], r["seed"]], place[r["arm"]]),
    )


def load_study(folder: str | Path) -> Results:
    """The results of a study as recorded in a folder, loose or packed (`export`, `compact`).

    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    return results_of(folder, recorded=True)
