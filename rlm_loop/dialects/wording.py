"""Every sentence that a dialect says to a model, in one place, so that wordings can be compared.

Results, errors and clipping marks are worded elsewhere, once, and are the same in every dialect.  The default texts
are those that did best of eight for each loop, by equal effort on development splits: see tuning in
`experiments/README.md`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm_loop.tools.function import Tool

_PRIMES = "print(sum(all(n % d for d in range(2, n)) for n in range(2, 50)))"
CODE_RULE = (
    "Solve the task by writing Python in a ```python block. It runs in a persistent REPL and you get its stdout. First "
    "print the result and check it. Then set the variable final_answer in another code block."
)
_SOLVED = (
    ' Compute with python and print the result; do not guess. For example, "How many primes are below 50?" is solved '
    f'in two replies:\n{{"name": "python", "arguments": {{"code": "{_PRIMES}"}}}}\nand, once 15 was printed,\n'
)
_FINAL = '{"name": "final_answer", "arguments": {"answer": 15}}'
CALLS_RULE = f"Reply with one tool call and nothing else.{_SOLVED}{_FINAL}"
CALLS_RULE_WITHOUT_FINAL = f"Reply with a call of python, in JSON, or with the answer.{_SOLVED}15"
REACT_INITIATOR = (
    "You are an agent that reaches a goal by reasoning and acting in turns. In every turn first think about the state "
    "of the task: what is known, what is missing, and which single step brings you closer. Then act: call one of the "
    "tools to collect the missing information or to change something. Then observe: read the result carefully before "
    "you plan the next step. Repeat thinking, acting and observing until you are sure of the result, and then call the "
    "final_answer tool with it."
)
REACT_THOUGHT = (
    "Think about what you have learned so far and decide on the next step. If information is missing, call a tool to "
    "get it. If you are done and know the result, call the final_answer tool."
)
REACT_TEMPLATE = (
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
NUDGE = "If this answers the question, call final_answer."
NO_OUTPUT = "(no output)"
NO_CALL = "No tool was called."

# What stands for the parts of a history that compaction left out, and how a summary of them is asked for.
OUTPUT_LEFT_OUT = "[{size:,} characters left out]"
LEFT_OUT = "[earlier turns left out: {count}]"
SUMMARY_OF = "Summary of earlier turns ({count}): "
SUMMARISE = (
    "Summarise these turns for whoever goes on with the task: what was found (exact values), which names exist in the "
    "REPL, what failed, what is still to do. At most {words} words; do not answer the task."
)


def tool_lines(heading: str, tools: Mapping[str, Tool]) -> str:
    """The tools as text: a heading and a line each, without prose around it; empty where there are none."""
    return "\n".join([heading, *(f"- {t.signature}" for t in tools.values())]) if tools else ""


MAY_BLOCK = "If you cannot go on, reply with one line and nothing else: BLOCKED: the reason."
TYPED_RULE = (
    "Beside its own arguments, state in each call expected_outcome (what it should lead to), stop_condition (when you "
    "will stop) and risk (low, medium or high)."
)
