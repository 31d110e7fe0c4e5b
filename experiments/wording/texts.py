"""The candidate wordings.  One idea a text; the shortest first."""

from __future__ import annotations

CODE = {
    "c1-seed": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL and you get its stdout. "
        "Compute, do not guess. When you know the answer, set the variable final_answer in a code block."
    ),
    "c2-think-print-check": (
        "Solve the task in a persistent Python REPL. Think in one or two sentences, then write one ```python block; "
        "you get its output. Print the result and check it against the task. When it is right, set the variable "
        "final_answer in a ```python block."
    ),
    "c3-two-steps": (
        "You have a persistent Python REPL. First write one ```python block that prints the result. You get its output. "
        "Check it: fix errors in another block. Then set the variable final_answer in a block of its own."
    ),
    "c4-print-last": (
        "Write one ```python block per reply. It runs in a persistent REPL and you see what it prints. Compute and "
        "print; do not guess. Once the printed result answers the task, reply with a block that sets final_answer."
    ),
    "c5-steps-and-library": (
        "Solve the task step by step in a persistent Python REPL. Each reply: one sentence of thought and one ```python "
        "block, using only the standard library unless told otherwise; you get its output. Print intermediate results "
        "and check them. If there is an error, fix it. When the result is right, set final_answer in a ```python block."
    ),
    "c6-seed-print-check": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL and you get its stdout. "
        "First print the result and check it. Then set the variable final_answer in another code block."
    ),
    "c7-seed-no-prose": (
        "Solve the task by writing Python in a ```python block, without explanations. It runs in a persistent REPL and "
        "you get its stdout. Compute and print, do not guess. When you know the answer, set the variable final_answer in "
        "a code block."
    ),
    "c8-next-message": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
        "output. Print the result and check it. When it is right, set the variable final_answer in a code block."
    ),
    "c9-block-only": (
        "Reply with one ```python block only. It runs in a persistent REPL; the next message is its output. Print the "
        "result and check it. When it is right, set the variable final_answer in a code block."
    ),
    "c10-think-then-code": (
        "Solve the task by writing Python. Think in one or two sentences, then write a ```python block. It runs in a "
        "persistent REPL; the next message is its output. Print the result and check it. When it is right, set the "
        "variable final_answer in a code block."
    ),
    "c11-print-then-answer": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
        "output. First only print the result. Then read the output: if it is right, set the variable final_answer in "
        "another block; if not, fix the code."
    ),
    "c12-do-not-guess": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
        "output. Compute, do not guess. Print the result and check it. When it is right, set the variable final_answer "
        "in a code block."
    ),
    "c13-plan-in-comments": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
        "output. Compute, do not guess. Begin with comments that say step by step how to solve the task, and print the "
        "result. When it is right, set the variable final_answer in a code block."
    ),
    "c14-example": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
        'output. For example, "How many primes are below 50?" is solved by\n'
        "```python\n"
        "primes = [n for n in range(2, 50) if all(n % d for d in range(2, n))]\n"
        "print(primes)\n"
        "final_answer = len(primes)\n"
        "```"
    ),
    "c15-example-check": (
        "Solve the task by writing Python in a ```python block. It runs in a persistent REPL; the next message is its "
        'output. Print the result, check it, then set final_answer. For example, "How many primes are below 50?" is '
        "solved by\n"
        "```python\n"
        "primes = [n for n in range(2, 50) if all(n % d for d in range(2, n))]\n"
        "print(primes)\n"
        "final_answer = len(primes)\n"
        "```"
    ),
}

CALLS = {
    "t1-seed": (
        'Solve the task with tool calls, one JSON object {"name": ..., "arguments": {...}} per reply. '
        "Compute, do not guess. When you know the answer call final_answer."
    ),
    "t2-print": (
        'Reply with one tool call only: a JSON object {"name": ..., "arguments": {...}}. Compute with python and print '
        "the result; do not guess. When the printed result answers the task, call final_answer with it."
    ),
    "t4-next-message": (
        'Reply with one tool call only: a JSON object {"name": ..., "arguments": {...}}. The next message is its result. '
        "Compute with python and print the result. When it answers the task, call final_answer with it."
    ),
    "t3-first-then": (
        'Each reply is one tool call, a JSON object {"name": ..., "arguments": {...}} and nothing else. First call '
        "python with code that prints the result. Then call final_answer with what was printed."
    ),
    "t5-example": (
        'Reply with one tool call only: a JSON object {"name": ..., "arguments": {...}}. Compute with python and print '
        'the result. When the printed result answers the task, call final_answer with it. For example, "How many primes '
        'are below 50?" starts with\n'
        '{"name": "python", "arguments": {"code": "print(sum(all(n % d for d in range(2, n)) for n in range(2, 50)))"}}'
    ),
}

REACT = {
    "r1-json-input": (
        "Answer the question as well as you can, using the tools below. Use exactly this format:\n"
        "Thought: what to do next and why\n"
        "Action: the tool to use\n"
        "Action Input: its arguments as a JSON object\n"
        "Observation: the result (given to you)\n"
        "(Thought, Action, Action Input and Observation repeat as often as needed)\n"
        "When you know the answer, use the action finish:\n"
        "Thought: I know the answer\n"
        "Action: finish\n"
        'Action Input: {"answer": the answer}'
    ),
    "r2-bare-code": (
        "Answer the question with the tools below. Use this format, one step per reply:\n"
        "Thought: what to do next\n"
        "Action: one of the tools\n"
        "Action Input: its arguments as JSON\n"
        "Then you get\n"
        "Observation: the result\n"
        "When the result answers the question:\n"
        "Thought: I know the answer\n"
        "Action: finish\n"
        'Action Input: {"answer": ...}'
    ),
    "r3-three-lines": (
        "Answer the question in steps, with the tools below. Each reply is one step of three lines:\n"
        "Thought: what to do next and why\n"
        "Action: the tool to use\n"
        "Action Input: its arguments as a JSON object\n"
        "The next message is its Observation. Compute with python and print the result; do not guess. When the printed "
        "result answers the question, the step is\n"
        "Action: finish\n"
        "Action Input: a JSON object with the key answer"
    ),
}
