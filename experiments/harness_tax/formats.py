"""How the script writes an action for a framework that reads it from text: a block of code, or dspy's fields.

The format is told by what the request itself says.  Where the prompt names the three tools of `frameworks.py`, code
calls these; else it is plain Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workspace import BUGGY, FIXED

from rlm_loop.messages import Prompt

THOUGHT = "I go on with the next step."
ANSWER = "The check passes now: the discount is subtracted."


@dataclass(frozen=True)
class Step:
    """One action: `read` a file, `run` a command, or `edit` a file."""

    does: str
    target: str = ""


@dataclass(frozen=True)
class Format:
    """`said` is the text of the prompt by which it is told, `act` writes a step, `end` is the last reply."""

    said: str
    act: Callable[[Step, Path, bool], str]
    end: str


def format_of(prompt: Prompt) -> Format | None:
    """The format that a request without tools asks for, `None` where it asks for none that is known."""
    text = prompt.messages[0].text if prompt.messages else ""
    return next((one for one in FORMATS if one.said in text), None)


def written(prompt: Prompt, step: Step, folder: Path) -> str:
    """The step in the format of the request.  Raises `ValueError` where that is not known."""
    found = format_of(prompt)
    if found is None:
        raise ValueError("the request has no tools and asks for no format that is known")
    return found.act(step, folder, any("edit_file" in message.text for message in prompt.messages))


def _arguments(step: Step) -> tuple[str, Mapping[str, str]]:
    """The tool of `frameworks.py` that does the step, and what it is given."""
    if step.does == "read":
        return "read_file", {"path": step.target}
    if step.does == "edit":
        return "edit_file", {"path": step.target, "old": BUGGY, "new": FIXED}
    return "run_command", {"command": step.target}


def code(step: Step, folder: Path, tools: bool) -> str:
    """The step as Python."""
    if tools:
        name, given = _arguments(step)
        return f"print({name}({', '.join(f'{key}={value!r}' for key, value in given.items())}))"
    path = str(folder / step.target)
    if step.does == "read":
        return f"print(open({path!r}).read())"
    if step.does == "edit":
        return f"text = open({path!r}).read()\nopen({path!r}, 'w').write(text.replace({BUGGY!r}, {FIXED!r}))"
    run = f"subprocess.run({step.target.split()!r}, cwd={str(folder)!r}, capture_output=True, text=True)"
    return f"import subprocess\nprint({run}.stdout)"


def _block(said: str, before: str, after: str, end: str) -> Format:
    def block(text: str) -> str:
        return f"{THOUGHT}\n\n{before}\n{text}\n{after}"

    last = f"{ANSWER}\n\n{before}\n{end}\n{after}"
    return Format(said, lambda step, folder, tools: block(code(step, folder, tools)), last)


def _fields(**fields: str) -> str:
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items()), "[[ ## completed ## ]]"])


def _field_call(step: Step, _folder: Path, _tools: bool) -> str:
    name, given = _arguments(step)
    return _fields(next_thought=THOUGHT, next_tool_name=name, next_tool_args=json.dumps(given))


def _field_code(step: Step, folder: Path, tools: bool) -> str:
    return _fields(reasoning=THOUGHT, code=code(step, folder, tools))


#: The first that fits is taken.  The third is dspy's request for an answer after its `ReAct` has ended.
FORMATS = (
    Format(
        "[[ ## next_tool_name", _field_call, _fields(next_thought=ANSWER, next_tool_name="finish", next_tool_args="{}")
    ),
    Format("[[ ## code", _field_code, _fields(reasoning=ANSWER, code=f"SUBMIT({ANSWER!r})")),
    Format("[[ ## trajectory", _field_code, _fields(reasoning=ANSWER, answer=ANSWER)),
    _block("```repl", "```repl", "```", f"answer['content'] = {ANSWER!r}\nanswer['ready'] = True"),
    _block("<code>", "<code>", "</code>", f"final_answer({ANSWER!r})"),
    _block("FINAL(", "```python", "```", f"FINAL({ANSWER!r})"),
    _block("```python", "```python", "```", f"final_answer = {ANSWER!r}"),
)
