"""Read the recorded replies with the reader of today: what it changes by arm, as `results/reread.csv` and a table.

Of each run the replies up to the first that ran nothing then and holds code now are played again, and their code is
judged by the suite's own test.  No model is called.  python experiments/answer_contract/reread.py
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget
from rlm_loop.actions import Answer, CallTool
from rlm_loop.agents import Agent, outcome_of
from rlm_loop.dialects.reader import code_of
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Turn
from rlm_loop.report import Table
from rlm_loop.study import read_trace, rescore
from rlm_loop.tasks import Attempt, Task
from rlm_loop.tools import Tool

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.answer_contract.study import SUITES, arms
from experiments.shared import suite_named

RESULTS = Path(__file__).resolve().parent / "results"
TOOLS = {name: Tool(name, "It is only read.", lambda code: code) for name in ("python", "final_answer")}
COLUMNS = {
    "refused": "refused replies",
    "refused, read": "of these read now",
    "answer, read": "answers that are code now",
    "right": "runs with right code among them",
    "ran": "resolved by code that ran",
    "read": "and by the code read now",
}


def unread(turn: Turn) -> str:
    """Say how a reply that ran nothing was taken: `refused` for its form, for the `answer`, or "" where it was read."""
    for action, seen in zip(turn.actions, turn.observations, strict=True):
        kind = seen.failure and seen.failure.kind
        if kind == "malformed" or (kind == "invalid_arguments" and isinstance(action, CallTool)):
            return "refused"
        if isinstance(action, Answer):
            return "answer"
    return ""


def right(agent: Agent, task: Task, turns: Sequence[Turn]) -> bool:
    """Say whether replies, played again, hold right code: what they leave behind or, for a value, what they print."""
    budget, model = Budget(steps=len(turns), repeated=None), ScriptedModel([turn.reply for turn in turns])
    outcome = replace(agent, model=model, budget=budget).attempt(task)
    attempt = Attempt.of(outcome)
    if len(task.submissions) == 1 and not outcome.answered:
        attempt = replace(attempt, answer=outcome.turns[-1].observations[-1].text.strip(), answered=True)
    return task.judge(attempt).resolved


agents, counts, lines = arms(), {arm: Counter[str]() for arm in arms()}, list[tuple[Any, ...]]()
suites = {f"{name}/test": suite_named(name, "test") for name in SUITES}
for row in rescore(RESULTS, suite=suites.__getitem__):
    agent, count = agents[row["arm"]], counts[row["arm"]]
    turns = outcome_of(read_trace(RESULTS, row["trace"], run=row.get("trace_run") or None)).turns
    codes = [any(code_of(a) is not None for a in agent.dialect.parse_reply(t.reply, TOOLS)) for t in turns]
    taken = [unread(turn) for turn in turns]
    count.update(how for how in taken if how == "refused")
    count.update(f"{how}, read" for how, code in zip(taken, codes, strict=True) if how and code)
    first = next((n for n, (how, code) in enumerate(zip(taken, codes, strict=True), 1) if how and code), 0)
    task = next(t for t in suites[row["suite"]].tasks if t.id == row["task"])
    verdicts = {"right": first > 0 and right(agent, task, turns[:first]), "ran": bool(row["resolved"])}
    verdicts["read"] = verdicts["right"] or verdicts["ran"]
    count.update({key: int(verdict) for key, verdict in verdicts.items()})
    lines.append((row["suite"], row["task"], row["arm"], int(verdicts["ran"]), int(verdicts["read"])))
with (RESULTS / "reread.csv").open("w", newline="", encoding="utf-8") as file:
    csv.writer(file, lineterminator="\n").writerows([("suite", "task", "arm", "ran", "read"), *sorted(lines)])
found = [[arm, *(str(count[key]) for key in COLUMNS)] for arm, count in counts.items()]
print(Table("The reader of today on the recorded replies", ["arm", *COLUMNS.values()], found).to_markdown())
