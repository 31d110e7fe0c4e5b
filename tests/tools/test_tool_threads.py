"""Threads in which tools run: used again when they are free, left to a tool that does not return."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from rlm_loop.tools import ToolGateway, tool


def test_tools_that_call_tools_do_not_wait_for_their_own_thread() -> None:
    inner = ToolGateway([tool(name="deep", description="Deep.")(lambda: threading.current_thread().name)])

    @tool
    def outer() -> list[str]:
        """Outer."""
        return [threading.current_thread().name, inner.call("deep").data]

    assert ToolGateway([outer]).call("outer").data == ["tool-outer", "tool-deep"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_has_threads_of_its_own() -> None:
    code = (
        "import os\n"
        "from rlm_loop.tools import ToolGateway, tool\n"
        "gate = ToolGateway([tool(name='f', description='F.')(lambda: 7)], timeout=20)\n"
        "assert gate.call('f').data == 7\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(gate.call('f').data)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
