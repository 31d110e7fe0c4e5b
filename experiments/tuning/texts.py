"""The candidates: eight for each loop, some with a worked example, some with replies constrained by a grammar.

No text has a line that a model could send back as its whole reply: formats are shown by a solved question, or described
without placeholders.  The first of each loop is the default of today.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from experiments.wording.texts import CALLS, CODE, REACT
from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.dialects.function_calls import Presentation

#: The defaults when this was begun; those of the package may change by what is found here.
CODE_TODAY, CALLS_TODAY, REACT_TODAY = CODE["c14-example"], CALLS["t2-print"], REACT["r1-json-input"]

_PRIMES = "print(sum(all(n % d for d in range(2, n)) for n in range(2, 50)))"
_FUNCTION = (
    " When a function is asked for, define it in the REPL, try it on an example, and set final_answer to the text done."
)

CODE_LOOK_FIRST = (
    "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
    'output. For example, "How many orders has Ada?" with the variable orders is solved in two replies:\n'
    "```python\n"
    "print(len(orders), orders[:2])\n"
    "```\n"
    "and, once that was seen,\n"
    "```python\n"
    'final_answer = sum(order["name"] == "Ada" for order in orders)\n'
    "```"
)

CALLS_EXAMPLE = (
    "Reply with one tool call and nothing else. Compute with python and print the result; do not guess. For example, "
    '"How many primes are below 50?" is solved in two replies:\n'
    f'{{"name": "python", "arguments": {{"code": "{_PRIMES}"}}}}\n'
    "and, once 15 was printed,\n"
    '{"name": "final_answer", "arguments": {"answer": 15}}'
)
CALLS_PLAIN = (
    "Reply with one tool call and nothing else: its name and its arguments, in JSON. Compute with python and print the "
    "result; do not guess. When the printed result answers the task, call final_answer with it."
)
CALLS_STEPS = (
    "Solve the task in steps, one tool call a reply, in JSON. First call python with code that prints what you need to "
    "know. Read the output. If there is an error, call python with mended code. Then call final_answer with the value "
    "that was printed, never with code."
)
CALLS_TEXT_ANSWER = (
    "Reply with a call of python, in JSON, or with the answer. Compute with python and print the result; do not guess. "
    'For example, "How many primes are below 50?" is solved in two replies:\n'
    f'{{"name": "python", "arguments": {{"code": "{_PRIMES}"}}}}\n'
    "and, once 15 was printed,\n"
    "15"
)

REACT_EXAMPLE = (
    "Answer the question with the tools below. For example, the question\n"
    "How many primes are below 50?\n"
    "is answered in two replies. The first:\n"
    "Thought: I test each number below 50 by division.\n"
    "Action: python\n"
    f'Action Input: {{"code": "{_PRIMES}"}}\n'
    "Then comes the line\n"
    "Observation: 15\n"
    "and the second reply is:\n"
    "Thought: 15 was printed, which answers the question.\n"
    "Action: finish\n"
    'Action Input: {"answer": 15}'
)
REACT_BARE_CODE = (
    "Answer the question with the tools below. Write the Python code itself behind Action Input. For example, the "
    "question\n"
    "How many primes are below 50?\n"
    "is answered in two replies. The first:\n"
    "Thought: I test each number below 50 by division.\n"
    "Action: python\n"
    f"Action Input: {_PRIMES}\n"
    "Then comes the line\n"
    "Observation: 15\n"
    "and the second reply is:\n"
    "Thought: 15 was printed, which answers the question.\n"
    "Action: finish\n"
    "Action Input: 15"
)
REACT_STEPS = (
    "Answer the question in steps, with the tools below. Each reply has a line that starts with Thought: (what to do "
    "next and why), one that starts with Action: (the name of a tool) and one that starts with Action Input: (its "
    "arguments, in JSON). You get the result in a line that starts with Observation: and go on. Compute with python "
    "and print; do not guess. When you know the answer, the action is finish, and its input has the key answer."
)


Maker = Callable[..., Agent]


def _code(text: str, **more: Any) -> Maker:
    return partial(ToolLoopAgent, system=text, max_depth=0, **more)


def _lean(text: str, presentation: Presentation = "text", **more: Any) -> Maker:
    return partial(LeanAgent, system=text, presentation=presentation, **more)


def _react(text: str, **more: Any) -> Maker:
    return partial(ReActAgent, system=text, **more)


CANDIDATES: Mapping[str, Mapping[str, Maker]] = {
    "code": {
        "code-1-default": _code(CODE_TODAY),
        "code-2-next-message": _code(CODE["c8-next-message"]),
        "code-3-example-check": _code(CODE["c15-example-check"]),
        "code-4-print-check": _code(CODE["c6-seed-print-check"]),
        "code-5-think": _code(CODE["c10-think-then-code"]),
        "code-6-look-first": _code(CODE_LOOK_FIRST),
        "code-7-example-function": _code(CODE_TODAY + _FUNCTION),
        "code-8-example-require": _code(CODE_TODAY, require_code=True),
    },
    "lean": {
        "lean-1-default": _lean(CALLS_TODAY),
        "lean-2-plain": _lean(CALLS_PLAIN),
        "lean-3-example": _lean(CALLS_EXAMPLE),
        "lean-4-steps": _lean(CALLS_STEPS),
        "lean-5-constrained": _lean(CALLS_PLAIN, "constrained"),
        "lean-6-constrained-example": _lean(CALLS_EXAMPLE, "constrained"),
        "lean-7-text-answer": _lean(CALLS_TEXT_ANSWER, answer_tool=False),
        "lean-8-example-function": _lean(
            CALLS_EXAMPLE
            + "\nWhen a function is asked for, define it with python, try it, and call final_answer with done."
        ),
    },
    "react": {
        "react-1-default": _react(REACT_TODAY),
        "react-2-default-result": _react(REACT_TODAY, finish_with_result=True),
        "react-3-steps": _react(REACT_STEPS),
        "react-4-example": _react(REACT_EXAMPLE),
        "react-5-example-result": _react(REACT_EXAMPLE, finish_with_result=True),
        "react-6-bare-code": _react(REACT_BARE_CODE),
        "react-7-bare-code-result": _react(REACT_BARE_CODE, finish_with_result=True),
        "react-8-example-function": _react(
            REACT_EXAMPLE + "\nWhen a function is asked for, define it with python, try it, and finish with done.",
            finish_with_result=True,
        ),
    },
}
