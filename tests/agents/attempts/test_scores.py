"""Scores of patches in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop.agents.attempts import load_scores, save_scores
from rlm_loop.tasks.base import Score


def test_scores_come_back_as_they_were(tmp_path: Path) -> None:
    scores = {
        ("a", "0f"): Score(True, 1.0, ""),
        ("a", "1e"): Score(False, 0.5, "1 of 2"),
        ("b", "0f"): Score(None, 0.0, "?"),
    }
    assert load_scores(save_scores(tmp_path / "deep" / "scores.json", scores)) == scores


def test_no_file_holds_no_scores(tmp_path: Path) -> None:
    assert load_scores(tmp_path / "scores.json") == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 2, "scores": {}}', '{"schema": 1, "scores": {"a": {"b": 1}}}']
)
def test_another_file_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "scores.json").write_text(text)
    with pytest.raises(ValueError, match="remove it"):
        load_scores(tmp_path / "scores.json")
