"""Read the recorded replies with the reader of today: what it changes by arm, as `results/reread.csv` and a table.

Of each run the replies up to the first that ran nothing then and holds code now are played again, and their code is
judged by the suite's own test.  No model is called.

python experiments/answer_contract/reread.py
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
from rlm_loop.tools import as_tool

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.answer_contract.study import SUITES, arms
from experiments.shared import suite_named


def python(code: str) -> str:
    """Run code."""
    return code


def final_answer(answer: Any) -> Any:
    """Give the answer."""
    return answer


TOOLS = {"python": as_tool(python), "final_answer": as_tool(final_answer)}
HERE = Path(__file__).resolve().parent
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
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        kind = None if observation.failure is None else observation.failure.kind
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
    if len(task.submissions) == 1:
        shown = outcome.turns[-1].observations[-1].text.strip()
        attempt = replace(attempt, answer=outcome.answer if outcome.answered else shown, answered=True)
    return task.judge(attempt).resolved


def main() -> None:
    agents, counts, lines = arms(), {arm: Counter[str]() for arm in arms()}, list[dict[str, Any]]()
    suites = {name: suite_named(name, "test") for name in SUITES}
    tasks = {(f"{name}/test", task.id): task for name, suite in suites.items() for task in suite.tasks}
    for row in rescore(HERE / "results", suite=lambda name: suites[name.split("/")[0]]):
        agent, task, count = agents[row["arm"]], tasks[row["suite"], row["task"]], counts[row["arm"]]
        turns = outcome_of(read_trace(HERE / "results", row["trace"], run=row.get("trace_run") or None)).turns
        first = None
        for number, turn in enumerate(turns, 1):
            read = any(code_of(action) is not None for action in agent.dialect().parse_reply(turn.reply, TOOLS))
            if (taken := unread(turn)) and (taken == "refused" or read):
                count[taken] += 1
                count[f"{taken}, read"] += read
                first = first or (number if read else None)
        good = first is not None and right(agent, task, turns[:first])
        count["right"] += good
        count["ran"] += row["resolved"]
        count["read"] += row["resolved"] or good
        line = {"suite": row["suite"], "task": row["task"], "arm": row["arm"]}
        lines.append({**line, "ran": int(row["resolved"]), "read": int(row["resolved"] or good)})
    with (HERE / "results" / "reread.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: (line["suite"], line["task"], line["arm"])))
    found = [[arm, *(str(count[key]) for key in COLUMNS)] for arm, count in counts.items()]
    print(Table("The reader of today on the recorded replies", ["arm", *COLUMNS.values()], found).to_markdown())


if __name__ == "__main__":
    main()
