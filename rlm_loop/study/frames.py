"""Rows as a pandas frame, where pandas is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A frame of rows, with these columns in their order.  Raises `StudyError` that says what to install."""
    try:
        import pandas
    except ImportError:
        raise StudyError(f"frames need pandas: {install_line('studies')}") from None
    return pandas.DataFrame(rows, columns=None if columns is None else list(columns))
