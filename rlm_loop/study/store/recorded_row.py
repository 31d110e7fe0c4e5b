"""What is relied on of a row, checked once where it is read."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Required

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict


def _inside(trace: str | None) -> str | None:
    """A trace is a file of the folder: a path that leads out is none."""
    path = PurePosixPath(trace or "")
    if path.is_absolute() or ".." in path.parts or "\\" in str(path):
        raise ValueError("it leads out of the folder")
    return trace


class RecordedRow(TypedDict, total=False):
    """What is relied on of a row; it has more fields (`docs/studies.md`)."""

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")  # pyright: ignore

    arm: Required[str]
    model: Required[str]
    suite: Required[str]
    task: Required[str]
    seed: Required[int]
    resolved: Required[bool | float | None]
    trace: Required[Annotated[str | None, AfterValidator(_inside)]]
    error: str | None
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


def wrong_field(value: dict[str, Any]) -> tuple[str, bool] | None:
    """Return the first field that is not as it should be, and whether it is missing; `None` where all are."""
    try:
        _ROWS.validate_python(value)
    except ValidationError as error:
        found = sorted(error.errors(), key=lambda one: one["type"] != "missing")[0]
        return str((*found["loc"], "row")[0]), found["type"] == "missing"
    return None
