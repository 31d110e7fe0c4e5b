"""Old names of figures, and of functions that drew and saved in one step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.hints.renamed import old_name
from rlm_loop.report.figures.saving import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The old name: the function that draws, its module in `figures`, and the name of the files.
_SAVED = {
    "save_figure": ("figure", "overview", "figure"),
    "save_dose_figure": ("dose_response", "doses", "doses"),
    "save_overhead_figure": ("overhead_by_turn", "overhead_by_turn", "overhead"),
    "save_size_figure": ("size_figure", "sizes", "by_size"),
    "save_anytime_figure": ("anytime_curves", "budgets", "anytime"),
    "save_coverage_figure": ("coverage_figure", "coverage", "coverage"),
    "save_tokens_by_turn": ("tokens_by_turn", "turns", "tokens_by_turn"),
}
_DRAWN = {"anytime_figure": ("anytime_curves", "budgets")}


def renamed(name: str) -> Callable[..., Any] | None:
    """The function that had this name in `rlm_loop.report`, with a `DeprecationWarning`; `None` if none had."""
    if name in _DRAWN:
        now, module = _DRAWN[name]
        return old_name(name, now, _function(module, now))
    if name in _SAVED:
        now, module, file = _SAVED[name]
        return old_name(name, f"save({now}(...), path)", partial(_draw_and_save, _function(module, now), file))
    return None


def _function(module: str, name: str) -> Callable[..., Figure]:
    return getattr(import_module(f"rlm_loop.report.figures.{module}"), name)


def _draw_and_save(
    draw: Callable[..., Figure], file: str, of: Any, folder: str | Path, name: str = "", **options: Any
) -> list[Path]:
    """As PNG and SVG, in a folder."""
    made, where = draw(of, **options), Path(folder)
    return [path for ending in (".png", ".svg") for path in save(made, where / f"{name or file}{ending}")]
