"""Replies that answer by `final_answer`, in every way.  What must happen is said in the semantics of the loop."""

from __future__ import annotations

import math

from experiments.robustness.suite.case import block
from experiments.robustness.suite.cases.reply_case import ANSWER, reply, value

CASES = (
    value("none", "None", None),
    value("zero", "0", 0),
    value("empty-text", "''", ""),
    value("false", "False", False),
    value("empty-list", "[]", []),
    value("giant", "10 ** 3000", 10**3000),
    value("text-with-braces", "'{x} {{}} %s'", "{x} {{}} %s"),
    reply(
        "final-nan",
        "answers NaN",
        "the run ends with it",
        block("final_answer = float('nan')"),
        answer=(math.nan,),
        steps=1,
    ),
    reply(
        "final-by-call", "calls final_answer(42)", "it is the answer", block("final_answer(42)"), answer=(42,), steps=1
    ),
    reply(
        "final-in-except",
        "calls final_answer(42) inside `except Exception`",
        "it is not swallowed",
        block("try:\n    final_answer(42)\nexcept Exception:\n    pass\nfinal_answer(1)"),
        answer=(42,),
        steps=1,
        needs=frozenset(["called answer"]),
    ),
    reply(
        "final-then-error",
        "sets final_answer and raises; then confirms",
        "the model sees the error, and the confirmed answer counts",
        block("final_answer = 42\n1 / 0"),
        block("final_answer = final_answer"),
        answer=(42,),
        steps=2,
        shows=("ZeroDivisionError",),
        needs=frozenset(["named answer"]),
    ),
    reply(
        "final-then-error-and-out-of-steps",
        "sets final_answer and raises in the last step",
        "the pending answer is the best one there is",
        block("final_answer = 42\n1 / 0"),
        answer=(42,),
        stop="steps",
        steps=1,
        budget={"steps": 1},
    ),
    reply(
        "final-deleted",
        "sets final_answer and deletes it",
        "there is no answer yet",
        block("final_answer = 1\ndel final_answer"),
        block(ANSWER),
        answer=(42,),
        steps=2,
        needs=frozenset(["named answer"]),
    ),
    reply(
        "final-printed",
        "prints `final_answer = 42`",
        "it is output",
        block("print('final_answer = 1')"),
        block(ANSWER),
        answer=(42,),
        steps=2,
    ),
    reply(
        "final-in-the-breaking-turn",
        "answers in the turn that breaks a limit",
        "the answer is kept",
        block(ANSWER),
        answer=(42,),
        stop="answered",
        steps=1,
        budget={"output_tokens": 14},
    ),
    reply(
        "final-in-the-last-step",
        "answers in the last step",
        "the answer is kept",
        block("print(1)"),
        block(ANSWER),
        answer=(42,),
        stop="answered",
        steps=2,
        budget={"steps": 2},
    ),
    reply(
        "final-of-a-stopped-cell",
        "sets final_answer and loops; then answers otherwise",
        "the stopped cell's answer does not end the run",
        block("final_answer = 1\nwhile True: pass"),
        block(ANSWER),
        answer=(42,),
        steps=2,
        cell_timeout=0.5,
    ),
    reply(
        "final-typed",
        "answers a text where a number is asked for, then a number",
        "the model is told what was wrong",
        block("final_answer = 'many'"),
        block(ANSWER),
        answer=(42,),
        steps=2,
        answer_type="int",
    ),
)
