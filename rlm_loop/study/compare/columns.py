"""A table of anybody's as rows: which column is the task, the arm, the seed, and what each row came to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import Row, class_of

#: The spellings of each column, the likeliest first; letter case, spaces and dashes do not matter.
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "task": (
        *("task", "task_id", "task_name", "instance_id", "sample_id", "question_id", "problem_id", "example_id"),
        *("doc_id", "problem", "question", "id"),
    ),
    "arm": ("arm", "system", "agent", "method", "variant", "condition", "strategy", "model", "model_name"),
    "resolved": (
        *("resolved", "is_resolved", "solved", "success", "passed", "pass", "correct", "is_correct"),
        *("score", "reward", "accuracy", "acc", "exact_match"),
    ),
    "seed": ("seed", "epoch", "attempt", "trial", "repeat", "repetition", "replicate"),
    "suite": ("suite", "benchmark", "dataset", "subset", "category"),
    "model": ("model", "model_name"),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in", "n_input_tokens", "in_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out", "n_output_tokens", "out_tokens"),
    "tokens": ("tokens", "total_tokens", "n_tokens", "token_count"),
    "cost": ("cost", "cost_usd", "total_cost", "usd", "price"),
    "seconds": ("seconds", "duration", "duration_s", "duration_seconds", "time", "wall_time", "total_time", "latency"),
    "steps": ("steps", "n_steps", "num_steps", "turns", "n_turns", "num_turns", "iterations"),
    "error": ("error", "exception"),
    "cluster": ("cluster", "repo", "repository", "family"),
}
#: What a row may have of numbers.
NUMBERS = ("input_tokens", "output_tokens", "tokens", "cost", "seconds", "steps")
#: The lock of results that no study declared: what is missing is no worse for one than another.
UNDECLARED: Mapping[str, Any] = {"defaults": {"missing": "bounds"}}

_RIGHT = {"true", "yes", "y", "pass", "passed", "correct", "resolved", "success", "succeeded", "c"}
_WRONG = {"false", "no", "n", "fail", "failed", "incorrect", "unresolved", "failure", "wrong", "i"}
_NO_ERROR = {"false", "0", "0.0", "no", "n", "ok"}
_NOTHING = {"nan", "none", "null", "n/a", "na"}
#: What tables of a study ask of a row, where a result of others says nothing of it.
_UNKNOWN: Row = {
    **dict.fromkeys((*NUMBERS[:2], *NUMBERS[3:], "new_tokens", "scaffold_tokens", "cached_tokens")),
    **dict.fromkeys(("answered", "actions", "malformed_turns", "lenient_calls", "value", "level")),
    "tool_failures": 0,
    "cell_errors": 0,
    "tool_seconds": [],
    "stop": "",
    "started": "",
    "trace": "",
    "error": None,
}


@dataclass(frozen=True)
class Rows:
    """Rows that can be compared, of a study (whose `study.json` is `lock`) or of anybody's table."""

    rows: Sequence[Row]
    lock: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def arms(self) -> list[str]:
        """The arms that have rows, in the order of the study (rows of several jobs come in any order)."""
        there = {r["arm"] for r in self.rows}
        declared = [arm for s in self.lock.get("sessions", ()) for arm in s.get("arms", ()) if arm in there]
        return list(dict.fromkeys([*declared, *(r["arm"] for r in self.rows)]))

    @cached_property
    def models(self) -> list[str]:
        """The models that have rows."""
        return list(dict.fromkeys(r["model"] for r in self.rows))

    @property
    def baseline(self) -> str:
        """The arm that the study declared to compare with, where it has rows; else the first."""
        declared = (self.lock.get("analysis") or {}).get("baseline")
        if not self.rows:
            raise StudyError("the study has no episode yet: run it first")
        return declared if declared in self.arms else self.arms[0]


def table_of(frame: Any) -> Rows:
    """A pandas or polars frame, or a list of mappings, as rows.  Raises `StudyError` for what cannot be read."""
    if hasattr(frame, "to_dicts"):  # polars
        frame = frame.to_dicts()
    elif hasattr(frame, "to_dict"):
        frame = frame.to_dict("records")
    if not isinstance(frame, Sequence) or isinstance(frame, str):
        raise StudyError(f"compare takes results, a frame or a list of rows, not {type(frame).__name__}")
    records: Sequence[Mapping[str, Any]] = frame
    names = column_names(records, "the table")
    rows = rows_of_table([(f"the table, row {n}", record) for n, record in enumerate(records, 1)], names)
    return Rows(models_told_apart(rows), UNDECLARED)


def models_told_apart(rows: Sequence[Row]) -> list[Row]:
    """Rows whose pairs are of one model where all arms had the same ones; else the model is a part of the arm."""
    models: dict[str, set[str]] = {}
    for row in rows:
        models.setdefault(row["arm"], set()).add(row["model"])
    if len({frozenset(of) for of in models.values()}) == 1 and len(models) > 1:
        return list(rows)
    return [
        {**r, "arm": r["arm"] if len(models[r["arm"]]) == 1 else f"{r['arm']} {r['model']}".strip(), "model": ""}
        for r in rows
    ]


def make_row(arm: str, task: object, seed: int | str, resolved: bool | None, **known: Any) -> Row:
    """A row of a result of others: what is not in `known` is not known."""
    row = {**_UNKNOWN, "suite": "", "model": "", **known}
    row |= {"arm": arm, "task": str(task), "seed": seed, "resolved": resolved}
    row["error_class"] = class_of(row["error"])
    return row


def column_names(
    records: Sequence[Mapping[str, Any]], where: str, columns: Mapping[str, str] | None = None, arm: str | None = None
) -> dict[str, str]:
    """Return the table's column for each of ours, as far as there is one.

    `columns` names those that are not found by their spelling (`SPELLINGS`), `arm` is what the rows are of where no
    column says it.  Raises `StudyError` where a column is missing, with the columns there are; `where` is for messages.
    """
    if not records:
        raise StudyError(f"{where} holds no rows")
    there = list(dict.fromkeys(str(name) for record in records for name in record))
    for ours, theirs in (columns or {}).items():
        if ours not in SPELLINGS:
            raise StudyError(f"there is no column {ours!r} to name; there are {', '.join(SPELLINGS)}")
        if theirs not in there:
            raise StudyError(f"{where} has no column {theirs!r}; it has {', '.join(there)}")
    plain = {"_".join(name.strip().lower().replace("-", " ").split()): name for name in reversed(there)}
    found = {ours: next((plain[s] for s in spellings if s in plain), "") for ours, spellings in SPELLINGS.items()}
    found |= columns or {}
    if found["model"] == found["arm"]:
        found["model"] = ""
    for name in ("task", "resolved") if arm is not None else ("task", "arm", "resolved"):
        if not found[name]:
            raise StudyError(
                f"{where} has no column for {name} ({', '.join(SPELLINGS[name])}); it has {', '.join(there)}"
            )
    return {name: column for name, column in found.items() if column}


def rows_of_table(
    records: Iterable[tuple[str, Mapping[str, Any]]],
    names: Mapping[str, str],
    *,
    arm: str | None = None,
    threshold: float | None = None,
) -> list[Row]:
    """A row for each record, which comes with its place, for messages.

    `names` are those of `column_names`, and `threshold` is the score from which a task counts as resolved; without it a
    score is 0 or 1.  A row without a score is not judged.  Raises `StudyError` where a value cannot be read, and where
    a task has two rows of one arm and seed.
    """
    rows: list[Row] = []
    seen: set[tuple[object, ...]] = set()
    for at, record in records:
        row = _row({name: _plain(record.get(column)) for name, column in names.items()}, names, arm, threshold, at)
        episode = tuple(row[k] for k in ("arm", "model", "suite", "task", "seed"))
        if episode in seen:
            told = (
                f", seed {row['seed']}" if "seed" in names else "; a column seed (or epoch, attempt) tells rows apart"
            )
            raise StudyError(f"{at}: task {row['task']!r} of arm {row['arm']!r} is there already{told}")
        seen.add(episode)
        rows.append(row)
    return rows


def _row(found: Mapping[str, Any], names: Mapping[str, str], arm: str | None, threshold: float | None, at: str) -> Row:
    for name in ("task", "arm"):
        if name in names and found[name] is None:
            raise StudyError(f"{at}: there is no {names[name]}")
    error = found.get("error")
    return make_row(
        str(found.get("arm", arm)),
        found["task"],
        _seed(found.get("seed")),
        as_resolved(found["resolved"], f"{at}, {names['resolved']}", threshold),
        suite=str(found.get("suite") or ""),
        model=str(found.get("model") or ""),
        error=None if str(error).strip().lower() in _NO_ERROR | _NOTHING else str(error),
        **({"cluster": found["cluster"]} if found.get("cluster") is not None else {}),
        **{n: as_number(found[n], f"{at}, {names[n]}") for n in NUMBERS if n in found},
    )


def as_resolved(value: Any, at: str, threshold: float | None = None) -> bool | None:
    """Return whether a score says that a task is resolved; `None` for no score.

    Raises `StudyError` for a score between 0 and 1, or beyond, without a `threshold`.
    """
    value = _plain(value)
    if value is None or isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _NOTHING:
        return None
    if word in _RIGHT or word in _WRONG:
        return word in _RIGHT
    try:
        number = float(word)
    except ValueError:
        raise StudyError(f"{at}: {value!r:.60} is no score (true, false, 1, 0, or a number)") from None
    if threshold is None and number not in (0.0, 1.0):
        raise StudyError(f"{at}: the score {value!r:.60} is neither right nor wrong; give a threshold, such as 0.5")
    return number >= (1.0 if threshold is None else threshold)


def as_number(value: Any, at: str) -> float | int | None:
    """A count or an amount; `None` for none.  Raises `StudyError` for what is no number, and below 0."""
    value = _plain(value)
    if value is None or str(value).strip().lower() in _NOTHING:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise StudyError(f"{at}: {value!r:.60} is no amount (a number, 0 or more)")
    return int(number) if number == int(number) else number


def _seed(value: Any) -> int | str:
    """A number where it is one, else what it is called; 0 where there is none."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return str(value)


def _plain(value: Any) -> Any:
    """A cell without numpy's and pandas' wrappings; `None` where it is empty."""
    if hasattr(value, "item") and not isinstance(value, (list, tuple)):
        value = value.item()
    nothing = isinstance(value, float) and math.isnan(value)
    return None if nothing or str(value).strip() in ("", "<NA>", "NaT") else value
