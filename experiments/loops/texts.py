"""The texts that were tried for each loop: the same four contents in each loop's form.

Equal effort means here: every loop has the same four candidates, on the same dev tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

#: What a candidate has: the rule of the form; a solved example too; advice to look before answering; all three.
KINDS = ("rule", "solved", "check", "both")
#: By loop: the form of its replies.
FORMS = {
    "code": "code",
    "lean": "calls",
    "react": "react",
    "react-calls": "calls",
    "program": "program",
    "prose": "prose",
}


class Step(NamedTuple):
    """A reply of the solved example, and what came back."""

    thought: str
    tool: str
    arguments: Mapping[str, Any]
    result: str = ""


_REACT = (
    "with the tools below. Use exactly this format:\n"
    "Thought: what to do next and why\n"
    "Action: the tool to use\n"
    "Action Input: its arguments as a JSON object\n"
    "Observation: the result (given to you)\n"
)
_FENCE = "writing Python in a ```python block. It runs in a persistent REPL and you get its stdout."
_CALLS = "tool calls."
#: The form of a call, for a model that writes it as text; one with native calls knows its own.
_WRITTEN = (
    'A call is one JSON object, {"name": the tool, "arguments": its arguments as a JSON object}; reply with it and '
    "nothing else."
)
_FUNCTION = "Where a function is asked for, define that function in Python."
_RULES = {
    ("code", "questions"): f"Solve the task by {_FENCE} When you know the answer, set the variable final_answer in a "
    f"code block. {_FUNCTION}",
    ("calls", "questions"): f"Solve the task with {_CALLS} Compute with python and print the result. When you know "
    f"the answer, call final_answer. {_FUNCTION}",
    ("react", "questions"): f"Solve the task {_REACT}Compute with python and print the result. When you know the "
    f"answer, use the action finish. {_FUNCTION}",
    ("program", "questions"): "Solve the task by writing Python, all of it in one ```python block. It is run once, "
    f"and you do not see what it prints. Set the variable final_answer to the answer. {_FUNCTION}",
    ("prose", "questions"): "Reply with the answer and nothing else. Where a function is asked for, reply with its "
    "code.",
    ("code", "repairs"): f"Mend the bug by {_FENCE} The functions below search, read and change the files. When the "
    "bug is mended, set the variable final_answer to a short note.",
    ("calls", "repairs"): f"Mend the bug with {_CALLS} The tools search, read and change the files. When the bug is "
    "mended, call final_answer with a short note.",
    ("react", "repairs"): f"Mend the bug {_REACT}The tools search, read and change the files. When the bug is mended, "
    "use the action finish with a short note.",
}
#: The rules for questions told in four other ways; what a reply must look like stays word for word.
_RETOLD = {
    "code": (
        "Work on the task with Python: write a ```python block, which runs in a REPL that keeps its variables, and its "
        "stdout comes back to you. As soon as you know the answer, assign it to the variable final_answer in a block.",
        "You have a persistent Python REPL. Code in a ```python block is run there, and you are shown what it prints. "
        "Your answer is the variable final_answer, set in such a block.",
        "Answer by running Python. Each reply is one ```python block; variables live on between blocks, and printed "
        "output is returned. A block that sets final_answer ends the task.",
        "Use Python step by step. A step is a ```python block, run in the same session as those before it; you then "
        "get its stdout. The last step sets the variable final_answer.",
    ),
    "calls": (
        "Work on the task with tool calls. Let python compute and print the result; as soon as you know the answer, "
        "call final_answer with it.",
        "You have the tools python and final_answer; each reply calls one of them. Code given to python should print "
        "its result; your answer goes to final_answer.",
        "Answer by calling tools. What python prints is returned. A call of final_answer ends the task.",
        "Use the tools step by step. A step is one tool call: first python, whose printed result you get, and last "
        "final_answer.",
    ),
    "react": (
        f"Work on the task {_REACT}Let python compute and print the result; as soon as you know the answer, use the "
        "action finish with it.",
        f"You answer the task {_REACT}Code given to python should print its result; your answer goes to the action "
        "finish.",
        f"Reason and act {_REACT}What python prints is returned. The action finish ends the task.",
        f"Go step by step {_REACT}First use python, whose printed result you get, and last the action finish.",
    ),
}
_ADVICE = {
    "questions": "First print the result and check it; answer in a later reply.",
    "repairs": "Read the function before you change it, and read it again before you end.",
    "program": "Before you set final_answer, let the program check it.",
    "prose": "Check the answer before you reply.",
}
_QUESTIONS = {
    "questions": "How many primes are below 50?",
    "repairs": "`half` does not do what its docstring says. In pocket/sizes.py:\n3: def half(x):\n"
    '4:     """Return half of x."""\nIts body is lines 5 to 5.\nWrite the function anew in the file, so that it does.',
}
_COUNT = "sum(all(n % d for d in range(2, n)) for n in range(2, 50))"
#: The repository of the solved repair, whose results are those of the real tools (by test).
POCKET = {
    "pocket/__init__.py": "from pocket.sizes import half\n",
    "pocket/sizes.py": '"""Sizes."""\n\ndef half(x):\n    """Return half of x."""\n    return x * 2\n',
}
_READ = '3: def half(x):\n4:     """Return half of x."""\n5:     return x * 2'
_LINES = {"path": "pocket/sizes.py", "start_line": 5, "end_line": 5, "replacement": "    return x / 2"}
_NAMED = {
    "path": "pocket/sizes.py",
    "name": "half",
    "source": 'def half(x):\n    """Return half of x."""\n    return x / 2',
}


def text(
    loop: str,
    kind: str,
    part: str = "questions",
    *,
    function_edit: bool = False,
    wording: int = 1,
    native: bool = False,
) -> str:
    """Return a candidate: of `FORMS` and `KINDS`, for a part of the study (`questions` or `repairs`).

    `wording` 1 is what is tuned; 2 to 5 tell the rule of questions in other words.  With `native` calls nothing is said
    of how a call is written.
    """
    form = FORMS[loop]
    parts = [_RULES[form, part] if wording == 1 else f"{_RETOLD[form][wording - 2]} {_FUNCTION}"]
    if form == "calls" and not native:
        parts.append(_WRITTEN)
    if part == "repairs":
        parts.append(f"Only {'edit_function' if function_edit else 'apply_edit'} changes a file.")
    if kind in ("check", "both"):
        parts.append(_ADVICE[form if form in _ADVICE else part])
    if kind in ("solved", "both"):
        parts.append(_example(form, part, function_edit))
    return "\n".join(parts)


def _example(form: str, part: str, function_edit: bool) -> str:
    """Return the solved task; every form tells the same one."""
    question = f"For example, the task\n{_QUESTIONS[part]}\nis "
    if form in ("program", "prose"):
        return f"{question}answered by\n" + ("15" if form == "prose" else f"```python\nfinal_answer = {_COUNT}\n```")
    steps, answer = solved(part, function_edit)
    # A reply that goes on with an `Observation:` of its own is read up to there, in every form.
    shown = [f"{_reply(form, step)}\nObservation: {step.result}" for step in steps] + [_end(form, *answer)]
    return f"{question}solved in {len(shown)} replies. The first:\n" + "\nThe next reply:\n".join(shown)


def solved(part: str, function_edit: bool) -> tuple[list[Step], tuple[str, Any]]:
    """Return the steps of the solved example, and the thought and value of its answer."""
    if part == "questions":
        step = Step("I test each number by division.", "python", {"code": f"print({_COUNT})"}, "15")
        return [step], ("15 was printed, which answers the question.", 15)
    named = ("edit_function", _NAMED, "half in pocket/sizes.py was replaced")
    lines = ("apply_edit", _LINES, _READ.replace("*", "/"))
    return [
        Step("I read it.", "read_file", {"path": "pocket/sizes.py", "start_line": 3}, _READ),
        Step("It doubles x, but should halve it.", *(named if function_edit else lines)),
    ], ("The bug is mended.", "half divides now")


def _reply(form: str, step: Step) -> str:
    if form == "code":
        values = ", ".join(map(repr, step.arguments.values()))
        code = step.arguments["code"] if step.tool == "python" else f"print({step.tool}({values}))"
        return f"```python\n{code}\n```"
    if form == "react":
        return f"Thought: {step.thought}\nAction: {step.tool}\nAction Input: {json.dumps(step.arguments)}"
    return json.dumps({"name": step.tool, "arguments": step.arguments})


def _end(form: str, thought: str, answer: Any) -> str:
    if form == "code":
        return f"```python\nfinal_answer = {answer!r}\n```"
    return _reply(form, Step(thought, "finish" if form == "react" else "final_answer", {"answer": answer}))
