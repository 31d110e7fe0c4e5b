"""Four paraphrases of each text that a loop can begin with: other words for the same sentences in the same order.

What a loop reads is kept to the letter: the names of tools and variables, the labels, the solved example.  Written
before any of them was run.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.shared import CODE, LEAN, REACT

_TWO_CALLS = LEAN[LEAN.index("\n{") :]
_TWO_STEPS = REACT[REACT.index("\nThought") :]

#: A text by loop, and its paraphrases.
WORDINGS: Mapping[str, tuple[str, ...]] = {
    "code": (
        CODE,
        (
            "Write Python in a ```python block to solve the task. The block runs in a persistent REPL and its "
            "stdout is given to you. Print the result and check it first. Afterwards set the variable "
            "final_answer in a second block."
        ),
        (
            "The task is to be solved by Python that you write in a ```python block. A persistent REPL runs it "
            "and returns its stdout. Begin by printing the result and checking it. Then, in another block, set "
            "the variable final_answer."
        ),
        (
            "Solve the task with Python code in a ```python block. It is executed in a REPL that persists, and "
            "you see its stdout. At first print the result and check it. After that set the variable "
            "final_answer in one more block."
        ),
        (
            "Use Python, written in a ```python block, to solve the task. It is run in a persistent REPL, whose "
            "stdout you receive. First of all the result is to be printed and checked. Next, another code block "
            "sets the variable final_answer."
        ),
    ),
    "lean": (
        LEAN,
        (
            "Answer with a single tool call and nothing more. Use python to compute, and print the result; never "
            'guess. For instance, two replies solve "How many primes are below 50?":'
        )
        + _TWO_CALLS,
        (
            "Each reply is just one tool call. Do not guess: compute with python and print the result. As an "
            'example, "How many primes are below 50?" takes two replies:'
        )
        + _TWO_CALLS,
        (
            "Send one tool call alone. Let python compute and print the result instead of guessing. This is how "
            '"How many primes are below 50?" is solved in two replies:'
        )
        + _TWO_CALLS,
        (
            "Your reply consists of one tool call, without anything else. Results are computed with python and "
            'printed, not guessed. Take "How many primes are below 50?", which is solved in two replies:'
        )
        + _TWO_CALLS,
    ),
    "react": (
        REACT,
        (
            "Use the tools below to answer the question. For instance, the question\n"
            "How many primes are below 50?\n"
            "takes two replies. This is the first:"
        )
        + _TWO_STEPS,
        (
            "The question is to be answered with the tools below. As an example, the question\n"
            "How many primes are below 50?\n"
            "is answered by two replies. First:"
        )
        + _TWO_STEPS,
        (
            "With the tools below, answer the question. This is how the question\n"
            "How many primes are below 50?\n"
            "is answered, in two replies. The first one:"
        )
        + _TWO_STEPS,
        (
            "Give the answer to the question by means of the tools below. Take the question\n"
            "How many primes are below 50?\n"
            "It is answered in two replies. The first is:"
        )
        + _TWO_STEPS,
    ),
}
