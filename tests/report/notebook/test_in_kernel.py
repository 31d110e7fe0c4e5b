"""In a real kernel: an output that is replaced, a stop button, values that show themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jupyter_client", reason='pip install -e ".[notebooks]"')
pytest.importorskip("ipykernel", reason='pip install -e ".[notebooks]"')

PATIENCE = 300
SETUP = """
%load_ext rlm_loop
import threading
from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.report import start_live
def scripted(*cells): return ScriptedModel([f"```python\\n{c}\\n```" for c in cells])
rows = [1, 2, 3]
"""


@dataclass
class Heard:
    """What came of a cell: its text, each display by its id in the order of drawing, the value, the error."""

    text: str = ""
    displays: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    value: dict[str, str] = field(default_factory=dict)
    error: list[str] = field(default_factory=list)


class Kernel:
    """A real Jupyter kernel, told to run cells."""

    def __init__(self, folder: Path) -> None:
        from jupyter_client.manager import KernelManager

        self._manager: Any = KernelManager(
            transport="ipc", connection_file=str(folder / "c.json"), ip=str(folder / "s")
        )
        env = {**os.environ, "PYTHONWARNINGS": "ignore:cells are not isolated:RuntimeWarning"}
        self._manager.start_kernel(extra_arguments=["--HistoryManager.enabled=False"], env=env)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE)
        self.run(f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}")

    def run(self, code: str, until: Callable[[Heard], bool] | None = None) -> Heard:
        """Run a cell and listen to its end; at the first moment of `until` the stop button is pressed."""
        request, heard, pressed = self._client.execute(code), Heard(), False
        while True:
            message = self._client.get_iopub_msg(timeout=PATIENCE)
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


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with closing(Kernel(tmp_path_factory.mktemp("k"))) as found:
        assert found.run(SETUP).error == []
        yield found


def test_a_view_is_one_output_from_running_to_the_outcome(kernel: Kernel) -> None:
    kernel.run("model = scripted('print(context)', 'final_answer = len(context)')")
    heard = kernel.run("%%rlm --model model --context rows\nHow many rows, <b>and</b> why?")
    assert (heard.error, heard.value, heard.text) == ([], {}, "")
    (shown,) = heard.displays.values()
    assert "<progress" in shown[0]["text/html"]
    assert any("turn 1: code" in part["text/html"] for part in shown)
    said = [part in shown[-1]["text/html"] for part in ("answered", "outcome", "<progress", "<b>and</b>")]
    assert said == [True, True, False, False]
    assert kernel.run("print(outcome.answer)").text == "3\n"


def test_sub_calls_from_threads_go_to_the_same_output(kernel: Kernel) -> None:
    kernel.run("model = scripted('final_answer = llm_query_batched([str(i) for i in range(12)])', *['x'] * 12)")
    heard = kernel.run("ToolLoopAgent(model=model).run('?', context=rows, live=True);")
    assert (heard.error, len(heard.displays), heard.text) == ([], 1, "")


ENDLESS = "model = scripted('while True: pass'); endless = ToolLoopAgent(model=model, budget=Budget(cell_seconds=600))"


def test_in_the_background_the_kernel_is_free_and_another_cell_stops_the_run(kernel: Kernel) -> None:
    kernel.run(ENDLESS)
    assert kernel.run("run = start_live(endless, '?')").error == []
    assert kernel.run("print(1 + 1, run.running)").text == "2 True\n"
    assert kernel.run("run.stop(); print(run.result(300).stop)").text == "interrupted\n"


def test_a_cell_of_the_default_kind_draws_and_its_outcome_is_shown_once(kernel: Kernel) -> None:
    pytest.importorskip("matplotlib", reason='pip install -e ".[notebooks]"')
    cell = "import matplotlib.pyplot as plt\\nplt.plot([1, 2])\\nplt.show()"
    kernel.run(f"model = scripted('{cell}', 'final_answer = 1')")
    heard = kernel.run("outcome = ToolLoopAgent(model=model, repl='plain').run('?', live=True)\noutcome")
    (shown,) = heard.displays.values()
    assert (heard.error, "data:image/png" in shown[-1]["text/html"], list(heard.value)) == ([], True, ["text/plain"])
    assert "data:image/png" in kernel.run("outcome").value["text/html"]


def test_a_wrong_argument_is_shown_as_an_error_of_ours_and_others_as_always(kernel: Kernel) -> None:
    said = kernel.run("agent = ToolLoopAgent(model=model)\nagent.run('?', max_step=3)").error
    assert [line[:9] for line in said] == ["line 2 of", "TypeError"]
    assert "Traceback" in "".join(kernel.run("int('x')").error)
