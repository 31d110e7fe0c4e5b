"""The experiment on real agents: the script finds each agent's own tools, and the committed results hold together."""

from __future__ import annotations

import errno
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from experiment_modules import EXPERIMENTS, modules

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, say
from rlm_loop.meter import chat, gemini, messages, metered_endpoint, responses
from rlm_loop.models import ScriptedModel

HERE = EXPERIMENTS / "harness_tax"
REQUESTS = Path(__file__).parents[1] / "meter" / "agents"
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
    with modules(HERE, "script", "workspace", "figures", "install", "provider") as found:
        yield found


def request(name: str) -> Any:
    return json.loads((REQUESTS / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", TOOLS)
def test_the_script_reads_runs_and_edits_with_the_agents_own_tools(tax: Any, name: str, tmp_path: Path) -> None:
    model = tax.script.ScriptedAgent(tmp_path, 7, tax.workspace.TASK)
    asked = request(name)
    tools = READERS.get(asked["path"], gemini).read(asked["body"]).tools
    said = [say("user", tax.workspace.TASK, "task")]
    calls: list[ToolCall] = []
    for _ in range(7):
        reply: Reply = model.complete(Prompt(tuple(said), tools))
        calls += reply.tool_calls
        wrote = Message("assistant", (Span(reply.text, "assistant"),), reply.tool_calls)
        said += [wrote, say("user", "done", "user")]
    assert model.finished
    reads, runs, edits = TOOLS[name]
    assert [call.name for call in calls] == [reads, reads, reads, runs, edits, runs]
    assert [tax.workspace.PRICES in call.arguments for call in calls] == [True, False, False, False, True, False]
    assert tax.workspace.FIXED in calls[4].arguments


@pytest.mark.parametrize("name", TOOLS)
def test_the_provider_answers_in_the_agents_own_api(tax: Any, name: str, tmp_path: Path) -> None:
    found = request(name)
    model = tax.script.ScriptedAgent(tmp_path, 7, tax.workspace.TASK)
    with tax.provider.serve(model, ScriptedModel([])) as address, metered_endpoint(forward=address) as url:
        assert httpx.post(f"{url}{found['path']}", json=found["body"], trust_env=False).status_code == 200
        (call,), rows = url.meter.calls, list(url.meter.figures.rows())
    assert call.unread == ""
    assert sum(row["tokens"] for row in rows) == call.input_tokens


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
    tables = (HERE / "tables.md").read_text("utf-8")
    for made in (tax.figures.first_table, tax.figures.total_table, tax.figures.cache_table):
        assert made(found) in tables
    assert tax.figures.page_table(found) in (EXPERIMENTS.parent / "docs" / "meter.md").read_text("utf-8")


def test_the_results_hold_no_text_of_a_product_and_no_place_of_this_machine() -> None:
    for path in (HERE / "results").iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"/tmp|/home|/root|https?://", text)
        assert max(map(len, re.findall(r'"([^"]*)"', text))) < 80


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


@pytest.mark.slow
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
