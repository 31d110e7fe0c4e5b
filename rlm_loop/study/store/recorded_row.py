"""The fields of a row that this package relies on, checked once where a row is read."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Required

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict


def _inside(trace: str | None) -> str | None:
    """Refuse a path of a trace that leads out of the study's folder."""
    path = PurePosixPath(trace or "")
    if path.is_absolute() or ".." in path.parts or "\\" in str(path):
        raise ValueError("it leads out of the folder")
    return trace


class RecordedRow(TypedDict, total=False):
    """The checked fields of a row; it has more (`docs/finished_folder.md`)."""

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")  # pyright: ignore

    arm: Required[str]
    model: Required[str]
    suite: Required[str]
    task: Required[str]
    seed: Required[int]
    resolved: Required[bool | float | None]
    trace: Required[Annotated[str | None, AfterValidator(_inside)]]
    error: Required[str | None]
    broken_off: int
    input_tokens: float | None
    output_tokens: float | None
    cached_tokens: float | None
    new_tokens: float | None
    scaffold_tokens: float | None
    cost: float | None
    seconds: float | None
    steps: float | None
    value: float | None


_ROWS = TypeAdapter(RecordedRow)


def fault_in(value: dict[str, Any]) -> str:
    """Return the first field that is not as it should be, with the reason; empty where all are."""
    try:
        _ROWS.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{first['loc'][0] if first['loc'] else 'row'}: {first['msg']}"
    return ""
