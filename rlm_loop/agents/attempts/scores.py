"""Scores of patches kept in a file, so that no state of a study's runs is judged twice."""

from __future__ import annotations

import json
from pathlib import Path

from rlm_loop.agents.attempts.anytime import Scores
from rlm_loop.outcome import Score

_SCHEMA = 1


def load_scores(path: str | Path) -> Scores:
    """What `save_scores` wrote; empty where there is no such file.  Raises `ValueError` for a file that is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        kept = json.loads(text)
        if kept["schema"] != _SCHEMA:
            raise ValueError(f"schema {kept['schema']}")
        return {
            (task, patch): Score(resolved, value, reason)
            for task, patches in kept["scores"].items()
            for patch, (resolved, value, reason) in patches.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} holds no scores of patches ({error}); remove it, and they are judged anew") from None


def save_scores(path: str | Path, scores: Scores) -> Path:
    """Write scores by task and by the hash of the patch; their evidence is left out.  Returns the path."""
    tasks: dict[str, dict[str, list[object]]] = {}
    for (task, patch), score in sorted(scores.items()):
        tasks.setdefault(task, {})[patch] = [score.resolved, score.value, score.reason]
    whole = Path(path)
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text(json.dumps({"schema": _SCHEMA, "scores": tasks}, indent=1) + "\n", encoding="utf-8")
    return whole
