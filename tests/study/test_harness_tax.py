"""The experiment on real agents: the script finds each agent's own tools, and the committed results hold together."""

from __future__ import annotations

import errno
import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, say
from rlm_loop.meter import chat, gemini, messages, responses

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "harness_tax"
REQUESTS = ROOT / "tests" / "meter" / "agents"
READERS = {"/chat/completions": chat, "/responses": responses, "/messages": messages}
#: By which tool each agent reads, runs and edits.
TOOLS = {
    "claude_code": ("Read", "Bash", "Edit"),
    "cline": ("read_files", "run_commands", "editor"),
    "codex": ("exec", "exec", "exec"),
    "codex_tools": ("exec_command", "exec_command", "apply_patch"),
    "codex_unknown_model": ("exec_command", "exec_command", "exec_command"),
    "gemini_cli": ("read_file", "run_shell_command", "replace"),
    "opencode": ("read", "bash", "edit"),
    "pi": ("read", "bash", "edit"),
    "qwen_code": ("read_file", "run_shell_command", "edit"),
}


@pytest.fixture(scope="module")
def tax() -> Iterator[Any]:
    """The modules of the experiment, imported as its commands import them."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        yield SimpleNamespace(
            **{name: importlib.import_module(name) for name in ("script", "workspace", "figures", "install")}
        )
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(HERE)):
            del sys.modules[name]


def tools_of(name: str) -> Any:
    found = json.loads((REQUESTS / f"{name}.json").read_text("utf-8"))
    return READERS.get(found["path"], gemini).read(found["body"]).tools


@pytest.mark.parametrize("name", TOOLS)
def test_the_script_reads_runs_and_edits_with_the_agents_own_tools(tax: Any, name: str, tmp_path: Path) -> None:
    model = tax.script.ScriptedAgent(tmp_path, 7, tax.workspace.TASK)
    said = [say("user", tax.workspace.TASK, "task")]
    calls: list[ToolCall] = []
    for _ in range(7):
        reply: Reply = model.complete(Prompt(tuple(said), tools_of(name)))
        calls += reply.tool_calls
        wrote = Message("assistant", (Span(reply.text, "assistant"),), reply.tool_calls)
        said += [wrote, say("user", "done", "user")]
    assert model.finished
    reads, runs, edits = TOOLS[name]
    assert [call.name for call in calls] == [reads, reads, reads, runs, edits, runs]
    assert [tax.workspace.PRICES in call.arguments for call in calls] == [True, False, False, False, True, False]
    assert tax.workspace.FIXED in calls[4].arguments


def test_what_is_not_of_the_task_gets_a_short_reply(tax: Any, tmp_path: Path) -> None:
    model = tax.script.ScriptedAgent(tmp_path, 7, tax.workspace.TASK)
    title = Prompt((say("system", "Make a title.", "system"), say("user", tax.workspace.TASK, "task")))
    schema = {"type": "OBJECT", "properties": {"why": {"type": "STRING"}, "score": {"type": "INTEGER"}}}
    assert model.complete(title).text == "Fix the check"
    routed = json.loads(model.complete(Prompt(title.messages, reply_schema=schema)).text)
    assert set(routed) == {"why", "score"}
    assert (model.auxiliary, model.finished) == (2, False)
    with pytest.raises(ValueError, match="7 or more"):
        tax.script.steps(6)


def test_the_folder_has_a_mistake_that_the_script_mends(tax: Any, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    tax.workspace.make(folder, memory="AGENTS.md")
    assert not tax.workspace.fixed(folder)
    prices = folder / tax.workspace.PRICES
    assert prices.read_text().splitlines()[tax.workspace.LINE - 1] == f"    {tax.workspace.BUGGY}"
    prices.write_text(prices.read_text().replace(tax.workspace.BUGGY, tax.workspace.FIXED))
    assert tax.workspace.fixed(folder)
    assert tax.workspace.MEMORY in (folder / "AGENTS.md").read_text()


def test_the_server_offers_ten_tools() -> None:
    asked = [
        {"id": 1, "method": "initialize"},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    done = subprocess.run(
        [sys.executable, str(HERE / "stock_server.py")], input=lines, capture_output=True, text=True, check=True
    )
    begun, listed = map(json.loads, done.stdout.splitlines())
    assert begun["result"]["serverInfo"]["name"] == "stock"
    assert len({tool["name"] for tool in listed["result"]["tools"]}) == 10


def test_the_rows_of_the_results_sum_and_every_run_came_to_its_end(tax: Any) -> None:
    runs, requests = tax.figures.rows("runs.jsonl"), tax.figures.rows("requests.jsonl")
    for one in requests:
        assert sum(one["causes"].values()) == one["input_tokens"]
        assert sum(tax.figures.grouped(one["causes"]).values()) == one["input_tokens"]
        assert all(0 <= hit <= one["input_tokens"] for hit in one["hits"].values())
    for run in runs:
        assert run["loopback_only"], "it could have reached the network"
        if run["error"]:
            assert run["error"] in ("takes no MCP server", "reads no memory file")
            continue
        who = (run["agent"], run["condition"], run["turns"])
        mine = [r for r in requests if (r["agent"], r["condition"], r["turns"]) == who]
        assert (run["finished"], run["fixed"], run["main_turns"]) == (True, True, run["turns"])
        assert run["requests"] == len(mine)
        assert run["input_tokens"] == sum(r["input_tokens"] for r in mine)
        first = next(r for r in mine if r["main"])
        assert sum(run["tools"].values()) == first["causes"].get("tool_schema", 0)


def test_the_tables_are_those_of_the_results(tax: Any) -> None:
    found = tax.figures.Found(tax.figures.rows("runs.jsonl"), tax.figures.rows("requests.jsonl"))
    readme = (HERE / "README.md").read_text("utf-8")
    for made in (tax.figures.first_table, tax.figures.total_table, tax.figures.cache_table):
        assert made(found) in readme
    assert tax.figures.page_table(found) in (ROOT / "docs" / "meter.md").read_text("utf-8")


def test_the_results_hold_no_text_of_a_product_and_no_place_of_this_machine() -> None:
    for path in (HERE / "results").iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"/tmp|/home|/root|https?://", text)
        assert max(map(len, re.findall(r'"([^"]*)"', text))) < 80


#: What the prompts of frameworks without function calls say, and how the first action and the end are written then.
FORMATS = [
    ("Write ```repl blocks; read_file, edit_file", "```repl\nprint(read_file(path=", "answer['ready'] = True\n```"),
    ("Code in <code>, tools: edit_file", "<code>\nprint(read_file(path=", "</code>"),
    ("```python and FINAL(x)", "```python\nprint(open(", "FINAL('The check"),
    ("Write ```python", "```python\nprint(open(", "final_answer = 'The check"),
    ("[[ ## next_tool_name ## ]] edit_file", '[[ ## next_tool_args ## ]]\n{"path": "shop', "tool_name ## ]]\nfinish"),
    ("[[ ## code ## ]] edit_file", "[[ ## code ## ]]\nprint(read_file(path=", "SUBMIT('The check"),
]


@pytest.mark.parametrize(("asks", "begins", "ends"), FORMATS)
@pytest.mark.parametrize("anew", [False, True], ids=["messages", "one message"])
def test_the_script_writes_the_format_that_is_asked_for(
    tax: Any, asks: str, begins: str, ends: str, anew: bool, tmp_path: Path
) -> None:
    model = tax.script.ScriptedAgent(tmp_path, 7, tax.workspace.TASK)
    history, replies = tax.workspace.TASK, list[str]()
    said = [say("system", asks, "system"), say("user", tax.workspace.TASK, "task")]
    for _ in range(7):
        replies.append(model.complete(Prompt(tuple(said))).text)
        if anew:
            history += f"\n{replies[-1]}\nOutput: done"
            said[1] = say("user", history, "user")
        else:
            said += [Message("assistant", (Span(replies[-1], "assistant"),)), say("user", "done", "user")]
    assert model.finished
    assert begins in replies[0]
    assert tax.workspace.FIXED in replies[4]
    assert ends in replies[6]
    assert len([reply for reply in replies if tax.script.THOUGHT in reply]) == 6


def test_a_format_that_nobody_asks_for_is_no_part_of_the_task(tax: Any, tmp_path: Path) -> None:
    model = tax.script.ScriptedAgent(tmp_path, 7, tax.workspace.TASK)
    assert model.complete(Prompt((say("user", tax.workspace.TASK, "task"),))).text == "Fix the check"
    with pytest.raises(ValueError, match="no format that is known"):
        sys.modules["formats"].written(Prompt((say("user", "x", "task"),)), tax.script.Step("run"), tmp_path)


def test_an_agent_is_found_on_path(tax: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pi"
    program.write_text('#!/bin/sh\necho "pi 9.8.7-beta.1 (in $HOME)"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    agent, found = tax.install.on_path("pi")
    assert (agent.label, found.bin, found.version) == ("pi", tmp_path, "9.8.7-beta.1")
    for name, says in (("nobody", "known are claude, codex"), ("gemini", "no program gemini"), ("rlms", "has no rlms")):
        with pytest.raises(LookupError, match=says):
            tax.install.on_path(name)


ALONE = """
import json, socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import install, study
from rlm_loop.models import ScriptedModel

alone = study._alone()
try:
    socket.create_connection(("192.0.2.1", 9), 1)
except OSError as error:
    reached = type(error).__name__, error.errno
agent = next(one for one in study.AGENTS if one.name == "tool_loop_agent")
found = install.pinned(agent, Path(sys.argv[2]))
row, requests = study.run(agent, study.CONDITIONS[0], Path(sys.argv[2]), ScriptedModel([]), found)
print(json.dumps([alone, reached, row, requests]))
"""


def test_a_run_without_network_comes_to_its_end(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    script = tmp_path / "alone.py"
    script.write_text(ALONE)
    command = [sys.executable, str(script), str(HERE), str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    alone, (_, number), row, requests = json.loads(done.stdout.splitlines()[-1])
    if not alone:
        pytest.skip("this system allows no network of its own")
    assert number == errno.ENETUNREACH
    assert (row["error"], row["finished"], row["fixed"], row["loopback_only"]) == ("", True, True, True)
    assert [sum(one["causes"].values()) for one in requests] == [one["input_tokens"] for one in requests]
