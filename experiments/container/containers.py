"""Five containers for code in a reply, the words that ask for each, and three readers of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.actions import Action, Malformed, RunCode
from rlm_loop.agents import Agent
from rlm_loop.dialects import CodeBlocks, FunctionCalls, ReActText
from rlm_loop.dialects.base import ActionMode, Dialect, Problem, text_to_read
from rlm_loop.dialects.reader import code_of
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools import Tool

#: Three ways to say the same; the first is asked on all tasks.
WORDS = (
    "Solve the task by writing Python, all of it in one reply. It is run once, and you do not see what it prints. Set "
    "the variable final_answer to the result. Where a function is asked for, define that function.",
    "Write one Python program that does the task. There is one run and no second reply. The program stores the result "
    "in the variable final_answer; if the task asks for a function, the program defines it.",
    "Answer with Python code. It will be run a single time, after which nothing can be changed. Leave the result in a "
    "variable named final_answer, or leave the function behind that the task asks for.",
)
QUESTION = 'How many of the words "red", "green" and "blue" have an "e"?'
CODE = 'words = ["red", "green", "blue"]\nfinal_answer = sum("e" in word for word in words)'
CALL = json.dumps({"name": "python", "arguments": {"code": CODE}})
_JSON = "Reply with one JSON object, a call of the tool python, and nothing else."

#: What is said of each container, and the example in it.
CONTAINERS: Mapping[str, tuple[str, str]] = {
    "fence": ("Reply with one ```python block and nothing else.", f"```python\n{CODE}\n```"),
    "json": (_JSON, CALL),
    "grammar": (_JSON, CALL),
    "xml": ("Reply with the code between <code> and </code> and nothing else.", f"<code>\n{CODE}\n</code>"),
    "react": (
        "Reply with an Action line and the code as its Action Input, and nothing else.",
        f"Action: python\nAction Input:\n{CODE}",
    ),
}
#: llama.cpp lets a reply in the container `grammar` be nothing but such a call.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "python"},
        "arguments": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "arguments"],
    "additionalProperties": False,
}


def _read_only(code: str) -> str:
    return code


_TOOLS = {"python": Tool("python", "Calls of it are read, never made.", _read_only)}
_TAG = re.compile(r"<code>(.*?)(?:</code>|\Z)", re.DOTALL)
_DIALECTS: Mapping[str, Dialect] = {"fence": CodeBlocks(), "json": FunctionCalls("text"), "react": ReActText()}


def text_for(container: str, words: int = 0) -> str:
    """Return the system text: the words, the container, and one task solved in it."""
    rule, example = CONTAINERS[container]
    return f"{WORDS[words]} {rule} For example, the task\n{QUESTION}\nis answered by\n{example}"


def fair(container: str, reply: Reply) -> list[str]:
    """Return the code of a reply whatever carries it: as asked for, else in another container, else bare."""
    text = text_to_read(reply)
    if isinstance(text, Malformed):
        return []
    own = {"xml": "fence", "grammar": "json"}.get(container, container)
    if tagged := _TAG.search(text):
        text = tagged[1].strip("\n")
        reply = Reply(text)
    for name in dict.fromkeys((own, *_DIALECTS)):
        if code := _codes(_DIALECTS[name].parse_reply(reply, _TOOLS)):
            return code
    return [text] if _compiles(text) else []


def strict(container: str, reply: Reply) -> list[str]:
    """Return the code of a reply that has the form asked for to the letter, as a parser of a few lines reads it."""
    text = "" if reply.cut_off else reply.text.strip()
    return [code] if (code := _STRICT[container](text)) and code.strip() else []


def _codes(actions: Sequence[Action]) -> list[str]:
    return [code for action in actions if (code := code_of(action)) and code.strip()]


def _compiles(text: str) -> bool:
    try:
        compile(text, "<reply>", "exec")
    except (SyntaxError, ValueError):
        return False
    return "=" in text or "def " in text


def _first(pattern: str) -> Callable[[str], str | None]:
    compiled = re.compile(pattern, re.DOTALL)
    return lambda text: found[1] if (found := compiled.search(text)) else None


def _call(text: str) -> str | None:
    try:
        call = json.loads(text)
        return call["arguments"]["code"] if call["name"] == "python" else None
    except (ValueError, KeyError, TypeError):
        return None


_STRICT: Mapping[str, Callable[[str], str | None]] = {
    "fence": _first(r"```python\n(.*?)\n```"),
    "json": _call,
    "grammar": _call,
    "xml": _first(r"<code>\n?(.*?)\n?</code>"),
    "react": _first(r"Action: python\nAction Input:\s(.*)"),
}


def usual(container: str, reply: Reply) -> list[str]:
    """Return the code as the readers of well-known frameworks find it: what is around the container does no harm."""
    return [code] if (code := _USUAL[container](reply.text)) and code.strip() else []


def _outermost(text: str) -> str | None:
    return _call(text[text.find("{") : text.rfind("}") + 1])


_USUAL: Mapping[str, Callable[[str], str | None]] = {
    "fence": _first(r"```(?:python|py)?[ \t]*\n(.*?)```"),
    "json": _outermost,
    "grammar": _outermost,
    "xml": _first(r"<code>(.*?)</code>"),
    "react": _first(r"Action\s*:\s*python\s*Action\s*Input\s*:\s*(.*)"),
}

READERS: Mapping[str, Callable[[str, Reply], list[str]]] = {"fair": fair, "usual": usual, "strict": strict}


@dataclass(frozen=True)
class OneReply(Dialect):
    """Ask for code in one container, and run what a reader finds in the reply."""

    container: str
    words: int = 0
    reader: str = "fair"
    action_mode: ActionMode = "code"

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.container

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        asked = "\n\n".join(filter(None, [problem.context, problem.question]))
        messages = (
            Message("system", (Span(text_for(self.container, self.words), "system"),)),
            Message("user", (Span(asked, "task"),)),
        )
        return Prompt(messages, reply_schema=SCHEMA if self.container == "grammar" else None)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = {}) -> Sequence[Action]:
        codes = READERS[self.reader](self.container, reply)
        return [RunCode(code) for code in codes] or [Malformed("There is no code.")]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return []  # there is no second turn


@dataclass(frozen=True)
class Container(Agent):
    """An agent that asks once for code in a container."""

    container: str = "fence"
    words: int = 0
    reader: str = "fair"

    def _speaks(self) -> Dialect:
        return OneReply(self.container, self.words, self.reader)
