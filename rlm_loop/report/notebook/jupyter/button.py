"""A button that stops a run in the background, where the notebook has widgets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from rlm_loop.report.notebook.live.surface import in_kernel


class StopButton(Protocol):
    """What is left to do with it once the run is over."""

    def close(self) -> None: ...


def stop_button(stop: Callable[[], None]) -> StopButton | None:
    """Show a button that calls `stop`; `None` outside a notebook, or where ipywidgets is not installed."""
    if not in_kernel() or find_spec("ipywidgets") is None:
        return None
    Button: Any = import_module("ipywidgets").Button  # by name: it is optional

    button: Any = Button(description="Stop", icon="stop", tooltip="Stop the run; what was done until then is kept")

    def clicked(_: object) -> None:
        button.disabled, button.description = True, "Stopping"
        stop()

    button.on_click(clicked)
    from IPython.display import display

    display(button)
    return _Shown(button)


class _Shown:
    def __init__(self, button: Any) -> None:
        self._button = button

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the notebook may be gone, and its button with it
            self._button.close()
