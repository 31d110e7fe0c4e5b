"""A real Jupyter kernel, told to run cells: what it prints, what it displays, and the stop button."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATIENCE = 300


@dataclass
class Heard:
    """What came of a cell: its text, each display by its id in the order of drawing, the value, the error."""

    text: str = ""
    displays: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    value: dict[str, str] = field(default_factory=dict)
    error: list[str] = field(default_factory=list)

    @property
    def last(self) -> str:
        """What the displays show in the end, as HTML."""
        return "".join(shown[-1]["text/html"] for shown in self.displays.values())


class Kernel:
    """Raises `ImportError` where jupyter_client is not installed."""

    def __init__(self, folder: Path) -> None:
        from jupyter_client.manager import KernelManager

        self._manager: Any = KernelManager(
            transport="ipc", connection_file=str(folder / "c.json"), ip=str(folder / "s")
        )
        self._manager.start_kernel(extra_arguments=["--HistoryManager.enabled=False"])
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=_PATIENCE)
        self.run(f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}")

    def run(self, code: str, until: Callable[[Heard], bool] | None = None) -> Heard:
        """Run a cell and listen to its end; at the first moment of `until` the stop button is pressed."""
        request, heard, pressed = self._client.execute(code), Heard(), False
        while True:
            message = self._client.get_iopub_msg(timeout=_PATIENCE)
            kind, content = message["header"]["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if kind == "stream":
                heard.text += content["text"]
            elif kind in ("display_data", "update_display_data"):
                shown = heard.displays.setdefault(content.get("transient", {}).get("display_id", ""), [])
                shown.append(content["data"])
            elif kind == "execute_result":
                heard.value = content["data"]
            elif kind == "error":
                heard.error = content["traceback"]
            elif kind == "status" and content["execution_state"] == "idle":
                return heard
            if until is not None and not pressed and until(heard):
                pressed = True
                self._manager.interrupt_kernel()

    def close(self) -> None:
        from jupyter_core.utils import ensure_event_loop

        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._manager.context.destroy(linger=0)
        ensure_event_loop().close()  # jupyter_client made it, and nobody else would close it
