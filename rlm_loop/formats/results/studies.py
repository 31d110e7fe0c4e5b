"""A study of ours: its folder, or the archive of one (`study.json` with `results.jsonl.gz` and `traces.tar.xz`)."""

from __future__ import annotations

from pathlib import Path

from rlm_loop.formats.results.source import Source
from rlm_loop.study.results import load_study
from rlm_loop.study.store.reading import LOCK


def is_study(path: Path) -> bool:
    return (path / LOCK).is_file()


def read_study(path: Path) -> Source:
    """The rows of a study; raises `StudyError` where they cannot be read."""
    return Source(path, "study", load_study(path).rows)
