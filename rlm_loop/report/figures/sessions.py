"""One typical session of each arm of a study, turn by turn and cause by cause, from its traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.report.figures.rows import arms_of
from rlm_loop.report.tables.trace_files import trace_files
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import TraceError

if TYPE_CHECKING:
    import pandas as pd

#: Tokens sent, and those of them that were sent before, by turn and cause.
Session = Mapping[tuple[int, str], tuple[int, int]]


def mean_session(
    results: Results, *, arms: Iterable[str] | None = None, tasks: int | None = None, share: float = 1 / 3
) -> pd.DataFrame:
    """The frame of a study for `overhead_by_turn` and `overhead_table`: mean tokens of each turn and cause.

    The columns are `arm, turn, cause, tokens, resent, running`.  A turn's means are over the tasks that reach it
    (`running`), as long as at least `share` of the arm's tasks do; only tasks that every arm was tried on, and of
    sub-calls nothing.  `tasks` takes the first so many of them, since every trace has to be read.  Raises
    `StudyError` where a trace is missing.
    """
    import pandas

    wanted = {
        arm.label: [str(r["trace"]) for r in list(arm.rows.values())[:tasks]] for arm in arms_of(results, arms).arms
    }
    every = [name for names in wanted.values() for name in names]
    found = {name: _session(name, path) for name, path in trace_files(results, every)}
    if gone := [name for name in every if name not in found]:
        raise _unreadable(gone[0], "it is not there")
    rows: list[dict[str, object]] = []
    for label, names in wanted.items():
        rows += [{"arm": label, **row} for row in _means([found[name] for name in names], share)]
    return pandas.DataFrame(rows, columns=["arm", "turn", "cause", "tokens", "resent", "running"])


def _unreadable(trace: str, why: object) -> StudyError:
    return StudyError(f"the trace {trace} cannot be read ({why}); a figure by turn needs all traces")


def _session(name: str, path: Path) -> Session:
    try:
        ledger = ledger_of(read(path))
    except (TraceError, OSError) as error:
        raise _unreadable(name, error) from None
    tokens, resent = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for row in ledger.rows:
        if row.depth == 0:
            tokens[row.turn, row.cause] += row.tokens
            resent[row.turn, row.cause] += row.resent
    return {key: (count, resent[key]) for key, count in tokens.items()}


def _means(sessions: list[Session], share: float) -> Iterator[dict[str, object]]:
    lasted = [max((turn for turn, _ in session), default=0) for session in sessions]
    causes = list(dict.fromkeys(cause for session in sessions for _, cause in session))
    for turn in range(1, max(lasted, default=0) + 1):
        running = [s for s, last in zip(sessions, lasted, strict=True) if last >= turn]
        if len(running) < share * len(sessions):
            return
        for cause in causes:
            sums = [sum(s.get((turn, cause), (0, 0))[part] for s in running) for part in (0, 1)]
            if sums[0]:
                tokens, resent = (round(n / len(running)) for n in sums)
                yield {"turn": turn, "cause": cause, "tokens": tokens, "resent": resent, "running": len(running)}
