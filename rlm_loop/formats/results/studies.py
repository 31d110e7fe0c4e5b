"""A study of ours: its folder, or the archive of one (`study.json` with `results.jsonl.gz` and `traces.tar.xz`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlm_loop.actions import RunCode
from rlm_loop.formats.results.source import Said, Source, said
from rlm_loop.study.results import load_study
from rlm_loop.study.store.reading import LOCK
from rlm_loop.study.store.rows import Row
from rlm_loop.traces.reader import RunRecord
from rlm_loop.traces.trace import TraceError


def is_study(path: Path) -> bool:
    return (path / LOCK).is_file()


def read_study(path: Path) -> Source:
    """The rows of a study; raises `StudyError` where they cannot be read."""
    found = load_study(path)

    def transcript(row: Row) -> Sequence[Said]:
        if not row.get("trace"):
            return ()
        try:
            return said_in(found.trace(row))
        except (TraceError, OSError):
            return ()

    return Source(path, "study", found.rows, transcript=transcript)


def said_in(record: RunRecord) -> list[Said]:
    """The messages of a recorded run: the question, each reply with its calls, and what each action led to."""
    from rlm_loop.agents.past_run import outcome_of

    outcome = outcome_of(record)
    found = [Said("user", outcome.question)]
    for turn in outcome.turns:
        found.append(said("assistant", turn.reply.text, [(c.name, c.arguments) for c in turn.reply.tool_calls]))
        for action, observation in zip(turn.actions, turn.observations, strict=True):
            text = observation.full or observation.text
            if text:
                found.append(Said("output" if isinstance(action, RunCode) else "tool", text))
    stop = f"{outcome.stop}: {outcome.answer!r}" if outcome.answer is not None else str(outcome.stop)
    return [*found, Said("end", stop)]
