"""Old names of figures, and of functions that drew and saved in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.hints.renamed import old_name
from rlm_loop.report.figures.saving import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The old name: the function that draws, and the name of the files.
_SAVED = {
    "save_figure": ("figure", "figure"),
    "save_dose_figure": ("dose_response", "doses"),
    "save_overhead_figure": ("overhead_by_turn", "overhead"),
    "save_size_figure": ("size_figure", "by_size"),
    "save_tokens_by_turn": ("tokens_by_turn", "tokens_by_turn"),
}
_DRAWN = {"anytime_figure": "anytime_curves"}


def renamed(name: str, there: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function of `rlm_loop.report` that had this name, with a `DeprecationWarning`; `None` if none had.

    `there` are the names of that package.
    """
    if name in _DRAWN:
        return old_name(name, _DRAWN[name], there[_DRAWN[name]])
    if name in _SAVED:
        now, file = _SAVED[name]
        return old_name(name, f"save({now}(...), path)", partial(_draw_and_save, there[now], file))
    return None


def _draw_and_save(
    draw: Callable[..., Figure], file: str, of: Any, folder: str | Path, name: str = "", **options: Any
) -> list[Path]:
    """As PNG and SVG, in a folder."""
    made, where = draw(of, **options), Path(folder)
    return [path for ending in (".png", ".svg") for path in save(made, where / f"{name or file}{ending}")]
