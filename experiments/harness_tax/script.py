"""The scripted model: it does the same small bug fix in every agent, with the tools that the agent itself offers.

A tool is told by what it does: its name and its parameters say whether it reads a file, runs a command or edits a file.
Where an agent has no tool to read or to edit, the shell does it.  Each reply is the same short thought with one call,
or with one action in the framework's own text format (`formats.py`).
Requests that are not of the task (titles, routing, memory) get the shortest reply that their form allows.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from formats import ANSWER, THOUGHT, Step, format_of, written
from workspace import BUGGY, CHECK, FIXED, LINE, PRICES, parts

from rlm_loop.messages import Prompt, Reply, ToolCall
from rlm_loop.models import Model


def steps(turns: int) -> list[Step]:
    """What is done before the answer, which is the last of so many turns: read three files, run the check, edit, run it
    again, then read other files and run the check in turn.  Raises `ValueError` for fewer than 7 turns."""
    if turns < 7:
        raise ValueError(f"{turns} turns are too few for the task; use 7 or more")
    files = parts()
    begin = [Step("read", PRICES), Step("read", files[0]), Step("read", "check.py"), Step("run", CHECK)]
    begin += [Step("edit", PRICES), Step("run", CHECK)]
    others: Iterator[Step] = (step for path in cycle(files[1:]) for step in (Step("read", path), Step("run", CHECK)))
    return [*begin, *islice(others, turns - 1 - len(begin))]


class ScriptedAgent(Model):
    """A model that follows the steps in a folder, however the agent asks.  Safe to use from several threads."""

    def __init__(self, folder: Path, turns: int, task: str) -> None:
        self.name = "scripted"
        self._task = task
        self._folder = folder
        self._steps = steps(turns)
        self._lock = threading.Lock()
        self.auxiliary = 0
        self.finished = False

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        done = _done(prompt, self._task)
        if done is None:
            with self._lock:
                self.auxiliary += 1
            return Reply(_shortest(prompt.reply_schema) if prompt.reply_schema else "Fix the check")
        if done >= len(self._steps):
            self.finished = True
            return _answer(prompt, self._folder)
        return _act(prompt, self._steps[done], self._folder, done)


def _done(prompt: Prompt, task: str) -> int | None:
    """How many steps of the task a request shows, `None` where the request is not the agent's own loop.

    It is the loop where the task was said, tools are offered (or a text format is asked for), and nothing but results
    (and what the agent puts around them) was said after the last action.
    """
    said = [message for message in prompt.messages if message.role in ("user", "assistant", "tool")]
    at = next((i for i, m in enumerate(said) if m.role == "user" and task in m.text), None)
    if at is None:
        return None
    if not prompt.tools:  # the history may stand in one message
        return None if format_of(prompt) is None else sum(m.text.count(THOUGHT) for m in said[at:])
    acted = [i for i, m in enumerate(said) if m.role == "assistant" and (m.tool_calls or THOUGHT in m.text)]
    if not acted:
        return None if any(m.role == "assistant" for m in said[at:]) else 0
    after = said[acted[-1] + 1 :]
    over = any(m.role == "assistant" for m in after)
    return None if over else len(acted)


def _function(tool: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name of a tool and the parameters that it takes."""
    about: Any = tool.get("function") or tool.get("custom") or tool
    schema: Any = about.get("parameters") or about.get("input_schema") or {}
    return str(about.get("name") or ""), schema.get("properties") or {}


_READS = re.compile(r"(?i)^(read|view|cat|open)(_?(text_?)?files?)?$")
_RUNS = re.compile(
    r"(?i)^(bash|shell|terminal|execute|exec_command|(run|execute)(_shell)?_commands?|shell_command|run)$"
)
_EDITS = re.compile(r"(?i)^(edit|edit_?file|editor|replace|replace_in_file|str_replace\w*|apply_patch)$")
_JAVASCRIPT = re.compile(r"(?i)^exec$")
_ENDS = re.compile(r"(?i)^(attempt_completion|submit_and_exit|finish|final_answer|complete_task)$")
_SAID_TO_END = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # mini-swe-agent's own way to end
_KINDS = {"read": _READS, "run": _RUNS, "edit": _EDITS}


def _found(prompt: Prompt, kind: re.Pattern[str]) -> Mapping[str, Any] | None:
    return next((tool for tool in prompt.tools if kind.match(_function(tool)[0])), None)


def _call(tool: Mapping[str, Any], arguments: Any) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(None, _function(tool)[0], text)


def _act(prompt: Prompt, step: Step, folder: Path, number: int) -> Reply:
    if not prompt.tools:
        return Reply(written(prompt, step, folder))
    tool = _found(prompt, _KINDS[step.does])
    if tool is None and (javascript := _found(prompt, _JAVASCRIPT)) is not None:
        call = _call(javascript, _in_javascript(step))
    elif tool is None:
        shell = _found(prompt, _RUNS)
        if shell is None:
            raise ValueError(f"no tool can {step.does}: {', '.join(_function(t)[0] for t in prompt.tools)}")
        call = _call(shell, _arguments(shell, Step("run", _command(step)), folder))
    else:
        call = _call(tool, _arguments(tool, step, folder))
    return Reply(THOUGHT, (ToolCall(f"call_{number:03d}", call.name, call.arguments),), "tool_calls")


def _answer(prompt: Prompt, folder: Path) -> Reply:
    if not prompt.tools and (text := format_of(prompt)) is not None:
        return Reply(text.end)
    ends = _found(prompt, _ENDS)
    shell = _found(prompt, _RUNS)
    if shell is not None and any(_SAID_TO_END in message.text for message in prompt.messages):
        call = _call(shell, _arguments(shell, Step("run", f"echo {_SAID_TO_END}"), folder))
        return Reply(ANSWER, (ToolCall("call_end", call.name, call.arguments),), "tool_calls")
    if ends is None:
        return Reply(ANSWER)
    name, takes = _function(ends)
    return Reply("", (ToolCall("call_end", name, json.dumps({next(iter(takes), "result"): ANSWER})),), "tool_calls")


#: What a parameter is for, told by its name, and what it is given.
_PATHS = re.compile(r"(?i)^(file_?path|absolute_?path|path|target_?file|file)$")
_OLD = re.compile(r"(?i)^old_?(string|str|text)?$")
_NEW = re.compile(r"(?i)^new_?(string|str|text)?$")
_COMMAND = re.compile(r"(?i)^(cmd|commands?|script)$")


def _arguments(tool: Mapping[str, Any], step: Step, folder: Path) -> Any:
    """What the tool is given: the parameters that the step needs, and others only where they are required."""
    name, takes = _function(tool)
    if name == "apply_patch":
        patch = _patch(step)
        return {"input": patch} if tool.get("type") != "function" else {next(iter(takes), "input"): patch}
    about: Any = tool.get("function") or tool
    schema: Any = about.get("parameters") or about.get("input_schema") or {}
    return _filled(schema, step, folder)


def _filled(schema: Mapping[str, Any], step: Step, folder: Path) -> dict[str, Any]:
    given: dict[str, Any] = {}
    takes: Mapping[str, Any] = schema.get("properties") or {}
    for name, about in takes.items():
        value = _value(name, about, step, folder)
        if value is not None:
            given[name] = value
        elif name in (schema.get("required") or ()):
            given[name] = _least(about)
    return given


def _value(name: str, about: Mapping[str, Any], step: Step, folder: Path) -> Any:
    """What a parameter is given for the step, `None` where it has nothing to do with it."""
    items: Any = about.get("items") or {}
    if about.get("type") == "array" and items.get("type") == "object":
        inner = _filled(items, step, folder)
        useful = any(
            _value(key, item, step, folder) is not None for key, item in (items.get("properties") or {}).items()
        )
        return [inner] if useful else None
    if name in ("start_line", "end_line") and step.does == "read":
        return None
    if _PATHS.match(name) and step.does in ("read", "edit"):
        return str(folder / step.target) if "absolute" in f"{name} {about.get('description')}" else step.target
    if _COMMAND.match(name) and step.does == "run":
        return [step.target] if about.get("type") == "array" else step.target
    if step.does == "edit" and _OLD.match(name):
        return BUGGY
    if step.does == "edit" and _NEW.match(name):
        return FIXED
    if step.does == "edit" and name in ("start_line", "end_line", "replacement"):
        return f"    {FIXED}" if name == "replacement" else LINE
    return None


def _least(about: Mapping[str, Any]) -> Any:
    """The smallest value of a required parameter's type."""
    if about.get("enum"):
        return about["enum"][0]
    kind = about.get("type")
    return {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}.get(str(kind), "Do the step.")


def _shortest(schema: Mapping[str, Any]) -> str:
    """The shortest JSON that a schema allows, for requests that want JSON."""
    takes: Mapping[str, Any] = schema.get("properties") or {}
    values = {name: _least({**about, "type": str(about.get("type", "")).lower()}) for name, about in takes.items()}
    return json.dumps({name: 1 if isinstance(v, int) and not isinstance(v, bool) else v for name, v in values.items()})


def _command(step: Step) -> str:
    """The step as a command of a shell."""
    if step.does == "read":
        return f"cat {step.target}"
    if step.does == "edit":
        return f"sed -i 's/{BUGGY}/{FIXED}/' {step.target}"
    return step.target


def _patch(step: Step) -> str:
    return f"*** Begin Patch\n*** Update File: {step.target}\n@@\n-    {BUGGY}\n+    {FIXED}\n*** End Patch\n"


def _in_javascript(step: Step) -> str:
    """The step for an agent whose one tool runs JavaScript that calls the others."""
    if step.does == "edit":
        return f"text(await tools.apply_patch({json.dumps(_patch(step))}));"
    return f"text(await tools.exec_command({json.dumps({'cmd': _command(step)})}));"
