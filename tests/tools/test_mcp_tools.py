"""Tools of MCP servers: the same server under both loops, and what a server may do wrong."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lazy import needs

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.models import Reply, ScriptedModel
from rlm_loop.tools import McpError, McpTools, ToolGateway
from rlm_loop.tools.mcp import python_names, serving, type_of
from tests.agents.replies import call, calls, code
from tests.repl.processes import gone

pytestmark = needs("mcp", extra="mcp")
SERVER = [sys.executable, str(Path(__file__).parent / "mcp_server.py")]


@pytest.fixture(scope="module")
def tools() -> McpTools:
    return McpTools(SERVER, timeout=20)


def seen(tools: Any, *replies: Reply | str, loop: Any = LeanAgent) -> list[str]:
    """Return the observations of a run before its answer."""
    outcome = loop(ScriptedModel([*replies, "Done."]), tools=tools).run("Well?")
    return [observation.text for turn in outcome.turns[:-1] for observation in turn.observations]


def ended(*pids: str) -> bool:
    return all(gone(int(pid), 2) for pid in pids)


def test_a_tool_is_told_as_the_server_has_it(tools: McpTools) -> None:
    assert tools["add_numbers"].signature == "add_numbers(a: int, b: int) -> str: Add two numbers. Both are whole."
    assert tools["people"].signature == (
        "people(in_: Optional[Literal['London', 'Arlington']] = None, limit: int = 10, min_age: int | None = None) "
        "-> list[dict[str, Any]]: Of a city or of all."
    )
    assert tools["add_numbers"].schema["function"]["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "integer", "description": "the first"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }
    assert tools["count"].signature == "count() -> str: Calls until now."  # not the object around it
    assert tools["text"].description == "text"
    assert [t.name for t in list(tools)[-2:]] == ["odd", "pid"]  # from the second page
    with pytest.raises(KeyError, match="has no tool 'add'; it has add_numbers, people"):
        tools["add"]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("add_numbers", (1,), {"b": 2}, "3"),
        ("people", ("London",), {}, [{"name": "Ada", "age": 36, "city": "London"}]),
        ("people", (), {"in_": "London", "min_age": 40}, []),
        ("people", (), {"min_age": 40, "limit": 1}, [{"name": "Grace", "age": 85, "city": "Arlington"}]),
        ("people", (None,), {"limit": 0}, []),
        ("picture", (), {}, "[image image/png, 3 bytes, not shown]\na dot"),
        ("text", (3,), {}, "xxx"),
        ("odd", (), {}, '3 rows\n{"type": "video", "uri": "a:b"}'),  # outside of the protocol
    ],
)
def test_a_tool_is_called_as_python(tools: McpTools, name: str, args: Any, kwargs: Any, value: Any) -> None:
    assert tools[name](*args, **kwargs) == value
    assert ToolGateway(tools).call_function(name, args, kwargs) == value


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "says"),
    [
        ("add_numbers", '{"a": 1}', "invalid_arguments", "missing 'b'"),
        ("add_numbers", '{"a": 1, "b": "2"}', "invalid_arguments", "'b': Input should be a valid integer, not '2'"),
        ("add_numbers", '{"a": 1, "b": 2, "c": 3}', "invalid_arguments", "unexpected 'c'"),
        ("people", '{"in_": "Paris"}', "invalid_arguments", "'in_': Input should be 'London' or 'Arlington'"),
        ("refuse", "", "runtime", "the disk is full"),
    ],
)
def test_a_failure_is_data_and_the_next_call_works(tools: Any, name: str, arguments: str, kind: str, says: str) -> None:
    gateway = ToolGateway(tools)
    result = gateway.call(name, arguments)
    assert (result.error, says in result.text) == (kind, True), result.text
    assert gateway.call("add_numbers", '{"a": 1, "b": 2}').data == "3"


def test_a_server_that_died_is_said_by_each_later_call() -> None:
    dead = "has ended (out of memory, exit status 3)"
    died, later = seen(McpTools(SERVER), call("die", status=3), call("count"))
    assert dead in died
    assert dead in later


HOST = """
import os, signal, sys
from rlm_loop.tools import McpTools
from rlm_loop.tools.mcp import serving
run = serving(list(McpTools(sys.argv[1:])))
print(run.__enter__()[-1](), flush=True)
os.kill(os.getpid(), signal.SIGKILL) if "kill" in sys.argv else None
"""


@pytest.mark.parametrize("end", ["kill", "leave open"])
def test_no_process_of_a_server_outlives_the_host(tmp_path: Path, end: str) -> None:
    words = [sys.executable, "-c", HOST, *SERVER, str(tmp_path / "x"), end]
    host = subprocess.run(words, capture_output=True, text=True)
    assert (host.stderr, len(host.stdout.split())) == ("", 2)
    assert ended(*host.stdout.split())


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no such option')"], r"\(no such option, exit status 1\)"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "did not answer within 0.3 s"),
        ("http://127.0.0.1:9/mcp", "cannot be used: ConnectError"),
    ],
)
def test_a_server_that_cannot_be_used_is_said_in_one_line(server: Any, reason: str) -> None:
    with pytest.raises(McpError, match=reason) as raised:
        len(McpTools(server, timeout=0.3 if "sleep" in str(server) else 20))
    assert "\n" not in str(raised.value)


def test_both_loops_are_told_the_same_and_a_cell_also_what_helps(tools: McpTools) -> None:
    (called,) = seen(tools, calls(("people", {"in_": "London"})))
    cells = "print(people(in_='London'))", "help(add_numbers)", "try: refuse()\nexcept Exception as e: print(e)"
    printed, told, error = seen(tools, *map(code, cells), loop=ToolLoopAgent)
    assert json.loads(called) == eval(printed) == [{"name": "Ada", "age": 36, "city": "London"}]
    assert "add_numbers(a: int, b: int) -> str" in told
    assert "Both are whole.\n\na: the first" in told.replace("\n    ", "\n")
    assert "the disk is full" in error


COUNT = [code("final_answer = count()")]


def test_each_run_has_a_server_of_its_own_which_ends_with_it(tmp_path: Path) -> None:
    started = tmp_path / "started"
    own = McpTools([*SERVER, str(started)])
    assert len(own) == 10
    assert LeanAgent(ScriptedModel(["Four."]), tools=own).run("2 + 2?").answer == "Four."  # it calls nothing
    assert started.read_text() == "started\n"  # to be asked for its tools
    (once, pids), (again, others) = (seen(own, call("count"), call("pid")) for _ in range(2))
    assert (once, again) == ("1", "1")
    assert ended(*pids.split(), *others.split())
    assert started.read_text() == "started\n" * 3


def test_a_sub_agent_has_the_server_of_its_run() -> None:
    script = [code("final_answer = (count(), llm_query('How often?'))"), *COUNT]
    agent = ToolLoopAgent(ScriptedModel(script), tools=McpTools(SERVER), max_depth=2)
    assert agent.run("How often?").answer == ("1", "2")


@pytest.mark.slow
def test_a_run_that_ends_in_the_middle_of_a_call_ends_its_server() -> None:
    model = ScriptedModel([call("pid"), call("wait")])
    outcome = LeanAgent(model, tools=McpTools(SERVER), seconds=6).run("Wait.")
    assert outcome.stop == "seconds"
    assert ended(*outcome.turns[0].observations[0].text.split())


def test_it_works_where_an_event_loop_runs_already() -> None:
    async def notebook() -> Any:
        tools = McpTools(SERVER)
        return tools["add_numbers"](1, 2), ToolLoopAgent(ScriptedModel(COUNT), tools=tools).run("How often?").answer

    assert asyncio.run(notebook()) == ("3", "1")


def test_calls_at_the_same_time_and_from_another_process(tools: McpTools) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert [int(n) for n in pool.map(tools["add_numbers"], range(8), range(8))] == list(range(0, 16, 2))
    copied = pickle.loads(pickle.dumps(list(tools)))
    assert seen(copied, call("count")) == ["1"]  # of a server of its own


AT_AN_ADDRESS = """
import socket, sys, uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("calc")

@server.tool()
def add(a: int, b: int) -> int:
    "Add."
    return a + b

@server.tool()
def text(characters: int) -> str:
    "Text."
    return "x" * characters

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
app = server.streamable_http_app(json_response=sys.argv[1] == "json")
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "events"])
def test_a_server_at_an_address(form: str) -> None:
    with subprocess.Popen([sys.executable, "-c", AT_AN_ADDRESS, form], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            tools = McpTools(f"http://127.0.0.1:{int(process.stdout.readline())}/mcp")
            assert tools["add"].signature == "add(a: int, b: int) -> int: Add."
            with serving(list(tools)) as shared:
                gateway = ToolGateway(shared)
                assert gateway.call("add", '{"a": 1, "b": 2}').data == 3
                assert gateway.call("text", f'{{"characters": {5 << 20}}}').truncated
                process.kill()
                process.wait()
                assert gateway.call("add", '{"a": 1, "b": 2}').error == "runtime"
        finally:
            process.kill()


def test_names_are_pythons_and_differ() -> None:
    names = ["a-b", "a.b", "a_b", "open", "class", "2nd", "é", "x" * 80]
    assert python_names(names) == ["a_b", "a_b_", "a_b__", "open_", "class_", "_2nd", "_", "x" * 60]


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "array", "items": {"type": "number"}}, list[float]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, str | None),
        ({"type": ["integer", "string"]}, int | str),
        ({"$ref": "#/$defs/one"}, Any),
        ({"enum": [1.5]}, Any),
        (True, Any),
        ({}, Any),
    ],
)
def test_types(schema: Any, hint: Any) -> None:
    assert type_of(schema) == hint


def test_two_servers_of_the_same_tools_need_a_prefix() -> None:
    both = [*McpTools(SERVER, prefix="first_"), *McpTools(SERVER, prefix="second_")]
    assert seen(both, call("second_add_numbers", a=1, b=2)) == ["3"]


def test_what_the_server_gets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_KEY", "x")
    told = "import os, sys; sys.exit(str(sorted(set(os.environ) & {'MY_SECRET_KEY', 'GIVEN', 'PATH'})))"
    with pytest.raises(McpError, match=r"\['GIVEN', 'PATH'\]"):
        len(McpTools([sys.executable, "-c", told], env={"GIVEN": "1"}))
    assert "MY_SECRET_KEY" in os.environ
