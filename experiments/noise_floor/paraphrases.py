"""Four paraphrases of each text that a loop can begin with: other words for the same sentences in the same order.

What a loop reads is kept to the letter: the names of tools and variables, the labels, the solved example.  A text is
made of a rule and, for some, a sentence on functions; both are rephrased.  Written before any of them was run.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.tuning.texts import (
    CALLS_EXAMPLE,
    CALLS_PLAIN,
    CALLS_TODAY,
    CODE_TODAY,
    REACT_EXAMPLE,
    REACT_TODAY,
)
from experiments.wording.texts import CODE
from rlm_loop.study import StudyError

_PRIMES_IN_CODE = CODE_TODAY[CODE_TODAY.index("```python\nprimes") :]
_TWO_CALLS = CALLS_EXAMPLE[CALLS_EXAMPLE.index("\n{") :]
_TWO_STEPS = REACT_EXAMPLE[REACT_EXAMPLE.index("\nThought") :]
_FORMAT = REACT_TODAY[REACT_TODAY.index("Thought: what") : REACT_TODAY.index("(Thought, Action")]
_FINISH = REACT_TODAY[REACT_TODAY.index("Thought: I know") :]

RULES: Mapping[str, tuple[str, ...]] = {
    CODE_TODAY: tuple(
        f"{prose}\n{_PRIMES_IN_CODE}"
        for prose in (
            "Write Python in a ```python block to solve the task. The block runs in a persistent REPL, and its "
            "output is "
            'the next message. For instance, "How many primes are below 50?" is solved with',
            "The task is to be solved by Python that you write in a ```python block. A persistent REPL runs it; "
            "what it "
            'outputs is the next message. As an example, "How many primes are below 50?" is solved by',
            "Solve the task with Python code in a ```python block. It is executed in a REPL that persists; you get its "
            'output in the next message. For example, this solves "How many primes are below 50?":',
            "Use Python, written in a ```python block, to solve the task. It is run in a persistent REPL, whose output "
            'comes as the next message. Take "How many primes are below 50?": it is solved by',
        )
    ),
    CODE["c6-seed-print-check"]: (
        "Write Python in a ```python block to solve the task. The block runs in a persistent REPL and its stdout is "
        "given to you. Print the result and check it first. Afterwards set the variable final_answer in a "
        "second block.",
        "The task is to be solved by Python that you write in a ```python block. A persistent REPL runs it and returns "
        "its stdout. Begin by printing the result and checking it. Then, in another block, set the variable "
        "final_answer.",
        "Solve the task with Python code in a ```python block. It is executed in a REPL that persists, and you see its "
        "stdout. At first print the result and check it. After that set the variable final_answer in one more block.",
        "Use Python, written in a ```python block, to solve the task. It is run in a persistent REPL, whose stdout you "
        "receive. First of all the result is to be printed and checked. Next, another code block sets the variable "
        "final_answer.",
    ),
    CALLS_TODAY: (
        'Answer with a single tool call only: a JSON object {"name": ..., "arguments": {...}}. Use python to compute, '
        "and print the result; never guess. As soon as the printed result answers the task, call final_answer with it.",
        'Each reply is just one tool call: a JSON object {"name": ..., "arguments": {...}}. Do not guess: compute with '
        "python and print the result. Once what was printed answers the task, call final_answer with that.",
        'Send one tool call and nothing more: a JSON object {"name": ..., "arguments": {...}}. Let python compute and '
        "print the result instead of guessing. If the printed result is the answer to the task, pass it to "
        "final_answer.",
        'Your reply is one tool call alone: a JSON object {"name": ..., "arguments": {...}}. Results are computed with '
        "python and printed, not guessed. When the task is answered by the printed result, give it to final_answer.",
    ),
    CALLS_PLAIN: (
        "Answer with a single tool call and nothing more: the name and the arguments, as JSON. Use python to "
        "compute, and "
        "print the result; never guess. As soon as the printed result answers the task, call final_answer with it.",
        "Each reply is just one tool call, in JSON: its name and its arguments. Do not guess: compute with python and "
        "print the result. Once what was printed answers the task, call final_answer with that.",
        "Send one tool call alone, its name and arguments in JSON. Let python compute and print the result instead of "
        "guessing. If the printed result is the answer to the task, pass it to final_answer.",
        "Your reply consists of one tool call: its name and its arguments in JSON, without anything else. Results are "
        "computed with python and printed, not guessed. When the task is answered by the printed result, give it to "
        "final_answer.",
    ),
    CALLS_EXAMPLE: tuple(
        prose + _TWO_CALLS
        for prose in (
            "Answer with a single tool call and nothing more. Use python to compute, and print the result; never "
            "guess. "
            'For instance, two replies solve "How many primes are below 50?":',
            "Each reply is just one tool call. Do not guess: compute with python and print the result. As an example, "
            '"How many primes are below 50?" takes two replies:',
            "Send one tool call alone. Let python compute and print the result instead of guessing. This is how "
            '"How many primes are below 50?" is solved in two replies:',
            "Your reply consists of one tool call, without anything else. Results are computed with python and "
            "printed, "
            'not guessed. Take "How many primes are below 50?", which is solved in two replies:',
        )
    ),
    REACT_TODAY: tuple(
        f"{opening}\n{_FORMAT}({repeat})\n{closing}\n{_FINISH}"
        for opening, repeat, closing in (
            (
                "Give the best answer to the question that you can, with the tools below. Keep exactly to this format:",
                "Thought, Action, Action Input and Observation are repeated as often as it takes",
                "Once you know the answer, the action is finish:",
            ),
            (
                "Use the tools below to answer the question as well as possible. The format is exactly this:",
                "Repeat Thought, Action, Action Input and Observation as many times as needed",
                "As soon as you know the answer, use finish as the action:",
            ),
            (
                "The question is to be answered as well as you can, by means of the tools below, in exactly this "
                "format:",
                "Thought, Action, Action Input and Observation may come again as often as necessary",
                "If you know the answer, take the action finish:",
            ),
            (
                "With the tools below, answer the question as well as you are able to. This is the format, exactly:",
                "the sequence Thought, Action, Action Input, Observation goes on for as long as needed",
                "When the answer is known to you, use the action called finish:",
            ),
        )
    ),
    REACT_EXAMPLE: tuple(
        prose + _TWO_STEPS
        for prose in (
            "Use the tools below to answer the question. For instance, the question\nHow many primes are below 50?\n"
            "takes two replies. This is the first:",
            "The question is to be answered with the tools below. As an example, the question\n"
            "How many primes are below 50?\nis answered by two replies. First:",
            "With the tools below, answer the question. This is how the question\nHow many primes are below 50?\n"
            "is answered, in two replies. The first one:",
            "Give the answer to the question by means of the tools below. Take the question\n"
            "How many primes are below 50?\nIt is answered in two replies. The first is:",
        )
    ),
}

_IN_CODE = (
    " When a function is asked for, define it in the REPL, try it on an example, and set final_answer to the text done."
)
#: What some texts say after their rule.
ADDED: Mapping[str, tuple[str, ...]] = {
    "": ("", "", "", ""),
    _IN_CODE: (
        " If the task asks for a function, define it in the REPL, test it with an example, and set final_answer to the "
        "text done.",
        " Where a function is wanted, define it in the REPL and try it on an example; then set final_answer "
        "to the text "
        "done.",
        " Should a function be asked for, then define it in the REPL, try an example with it, and let final_answer be "
        "the text done.",
        " For a task that wants a function: define it in the REPL, run it on an example, set final_answer to the text "
        "done.",
    ),
    "\nWhen a function is asked for, define it with python, try it, and call final_answer with done.": (
        "\nIf the task asks for a function, define it with python, test it, and call final_answer with done.",
        "\nWhere a function is wanted, define it with python and try it; then call final_answer with done.",
        "\nShould a function be asked for, then define it with python, try it out, and pass done to final_answer.",
        "\nFor a task that wants a function: define it with python, run it, call final_answer with done.",
    ),
    "\nWhen a function is asked for, define it with python, try it, and finish with done.": (
        "\nIf the task asks for a function, define it with python, test it, and finish with done.",
        "\nWhere a function is wanted, define it with python and try it; then finish with done.",
        "\nShould a function be asked for, then define it with python, try it out, and let finish have done.",
        "\nFor a task that wants a function: define it with python, run it, finish with done.",
    ),
}


def wordings(text: str) -> tuple[str, ...]:
    """The text and its four paraphrases.  Raises `StudyError` for a text that has none."""
    for rule in RULES:
        if text.startswith(rule) and (added := ADDED.get(text.removeprefix(rule))) is not None:
            return (text, *(one + more for one, more in zip(RULES[rule], added, strict=True)))
    raise StudyError(f"there are no paraphrases of the text {text[:60]!r}: write four in noise_floor/paraphrases.py")
