"""In a real kernel: an output that is replaced, a stop button, values that show themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from notebook_kernel import Kernel

pytest.importorskip("jupyter_client", reason='pip install -e ".[kernel]"')
pytest.importorskip("ipykernel", reason='pip install -e ".[kernel]"')

SETUP = """
%load_ext rlm_loop
from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.report import start_live
def scripted(*cells): return ScriptedModel([f"```python\\n{c}\\n```" for c in cells])
rows = [1, 2, 3]
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    found = Kernel(tmp_path_factory.mktemp("k"))
    try:
        assert found.run(SETUP).error == []
        yield found
    finally:
        found.close()


def test_a_view_is_one_output_from_running_to_the_outcome(kernel: Kernel) -> None:
    kernel.run("model = scripted('print(context)', 'final_answer = len(context)')")
    heard = kernel.run("%%rlm --model model --context rows\nHow many rows, <b>and</b> why?")
    assert (heard.error, heard.value, heard.text) == ([], {}, "")
    (shown,) = heard.displays.values()
    assert "<progress" in shown[0]["text/html"]
    assert any("turn 1: code" in part["text/html"] for part in shown)
    last = shown[-1]
    assert "answered" in last["text/html"]
    assert "<progress" not in last["text/html"]
    assert "<b>and</b>" not in last["text/html"]
    assert "outcome" in last["text/html"]
    assert kernel.run("print(outcome.answer)").text == "3\n"


def test_sub_calls_from_threads_go_to_the_same_output(kernel: Kernel) -> None:
    kernel.run("model = scripted('final_answer = llm_query_batched([str(i) for i in range(12)])', *['x'] * 12)")
    heard = kernel.run("ToolLoopAgent(model=model).run('?', context=rows, live=True);")
    assert (heard.error, len(heard.displays), heard.text) == ([], 1, "")


def test_the_stop_button_keeps_what_was_done(kernel: Kernel) -> None:
    kernel.run("model = scripted('kept = 1', 'print(\"partial\")\\nwhile True: pass')")
    heard = kernel.run(
        "%%rlm --model model\nWork on it.",
        until=lambda h: any("turn 2: the model writes" in d[-1]["text/html"] for d in h.displays.values()),
    )
    assert heard.error == ["Interrupted: interrupted after 2 turns; what was done is in the variable outcome"] or (
        heard.error == ["Interrupted: interrupted after 1 turn; what was done is in the variable outcome"]
    )
    assert "interrupted" in heard.last
    assert kernel.run("print(outcome.stop, outcome.steps >= 1)").text == "interrupted True\n"


def test_the_stop_button_stops_what_is_awaited(kernel: Kernel) -> None:
    kernel.run("from rlm_loop.models import ScriptedModel as S; import threading; gone = threading.Event()")
    kernel.run("agent = ToolLoopAgent(model=S([lambda prompt: 'x' if gone.wait(600) else 'y']))")
    heard = kernel.run("print('begun', flush=True); await agent.arun('?')", until=lambda h: h.text == "begun\n")
    assert heard.error
    assert "CancelledError" in heard.error[-1] or "KeyboardInterrupt" in heard.error[-1]
    assert kernel.run("gone.set(); print('free')").text == "free\n"


def test_in_the_background_the_kernel_is_free_and_another_cell_stops_the_run(kernel: Kernel) -> None:
    kernel.run("model = scripted('while True: pass')")
    assert (
        kernel.run(
            "run = start_live(ToolLoopAgent(model=model, budget=Budget(cell_seconds=600)), '?', button=False)"
        ).error
        == []
    )
    assert kernel.run("print(1 + 1, run.running)").text == "2 True\n"
    heard = kernel.run("run.stop(); print(run.wait(300).stop)")
    assert heard.text == "interrupted\n"
    assert "interrupted" in heard.last  # drawn again by the cell that waited


def test_what_shows_itself(kernel: Kernel) -> None:
    kernel.run("outcome = ToolLoopAgent(model=scripted('final_answer = 7')).run('?')")
    for expression, kinds in (
        ("outcome", {"text/html", "text/plain"}),
        ("outcome.ledger", {"text/html", "text/plain"}),
        ("outcome.ledger.frame()", {"text/html", "text/plain"}),
    ):
        heard = kernel.run(expression)
        assert set(heard.value) == kinds, expression
        assert "<script" not in heard.value["text/html"]


def test_a_button_is_there_where_widgets_are(kernel: Kernel) -> None:
    if kernel.run("import ipywidgets").error:
        pytest.skip('pip install -e ".[jupyter]"')
    kernel.run("model = scripted('while True: pass')")
    heard = kernel.run("run = start_live(ToolLoopAgent(model=model, budget=Budget(cell_seconds=600)), '?')")
    assert any("application/vnd.jupyter.widget-view+json" in d[0] for d in heard.displays.values())
    kernel.run("from ipywidgets import Button, Widget")
    kernel.run("button, = (w for w in Widget.widgets.values() if isinstance(w, Button))")
    assert kernel.run("button.click(); print(run.wait(300).stop)").text == "interrupted\n"
