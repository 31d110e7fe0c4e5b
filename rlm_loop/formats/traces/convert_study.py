"""From a study to files of other tools: which of its runs, with which score, into which file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlm_loop.formats.traces.conversation import RunConversation
from rlm_loop.formats.traces.convert import Format, check, write
from rlm_loop.formats.traces.from_trace import conversation_of
from rlm_loop.outcome import Score
from rlm_loop.study.results import Results, load_study


def export_study(study: str | Path | Results, to: Format, out: str | Path, *, content: bool = True) -> list[Path]:
    """Write every run of a study, with its score, into the folder `out`; returns the files' paths.

    `study` is the folder of a study's results, or the results.  Episodes that have no trace are left out.  Raises
    `StudyError` where the folder holds no study, and otherwise as `export_trace`.
    """
    check(to, content)
    return _write_all(_results(study), to, Path(out), content)


def _results(study: str | Path | Results) -> Results:
    return study if isinstance(study, Results) else load_study(study)


def _write_all(results: Results, to: Format, folder: Path, content: bool) -> list[Path]:
    episodes = episodes_of(results)
    match to:
        case "otel":
            files = [(conversation, folder / f"{name}.otlp.jsonl") for conversation, name in episodes]
            for conversation, path in files:
                write(conversation, to, path, content)
            return [path for _, path in files]
        case "inspect":
            from rlm_loop.formats.traces.inspect_out import write_log

            logs: dict[Path, list[RunConversation]] = {}
            for conversation, _ in episodes:
                words = [str(conversation.episode[part]) for part in ("arm", "model", "suite")]
                name = re.sub(r"[^\w.-]+", "-", "--".join(words))
                logs.setdefault(folder / f"{name}.eval", []).append(conversation)
            for path, conversations in logs.items():
                write_log(conversations, path)
            return list(logs)


#: What of a study's row says which episode it is.
_EPISODE = ("study", "arm", "model", "suite", "task", "seed")


def episodes_of(results: Results) -> Sequence[tuple[RunConversation, str]]:
    """The runs of a study that have a trace, each with its score and the name of its trace in its arm's folder."""
    found: list[tuple[RunConversation, str]] = []
    for row in results.rows:
        if not row.get("trace"):
            continue
        score = Score(row["resolved"], row.get("value") or 0.0, str(row.get("score_reason") or ""))
        conversation = conversation_of(results.trace(row), score)
        about = {**conversation.about, "episode": {name: row.get(name) for name in _EPISODE}}
        name = str(row["trace"]).removeprefix("traces/").removesuffix(".gz").removesuffix(".jsonl")
        found.append((replace(conversation, about=about), name))
    return found
