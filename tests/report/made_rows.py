"""Made-up rows with the shape of a real study's, to try tables and figures on."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Any

from rlm_loop.study import Results

#: arm: (chance to resolve, tokens of the first prompt, tokens that a turn adds, mean turns)
ARMS = {
    "code": (0.62, 150, 95, 2.6),
    "lean": (0.38, 190, 90, 2.9),
    "lean+nudge": (0.52, 190, 105, 2.7),
    "react-native": (0.33, 420, 210, 3.9),
    "react-text": (0.27, 320, 150, 3.4),
}
SUITES = ("computation/test", "tables/test", "function-repair/test")


def made_results(tasks: int = 12, seed: int = 1, arms: dict[str, Any] = ARMS, recorded: bool = False) -> Results:
    """A study of `tasks` tasks in each of three suites, the same for the same `seed`."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for suite in SUITES:
        for number in range(tasks):
            for arm, (chance, first, growth, turns) in arms.items():
                steps = max(1, min(6, round(draw.gauss(turns, 1.4))))
                sent = list(accumulate(first + growth * k + draw.randint(0, 40) for k in range(steps)))
                resolved = draw.random() < chance
                rows.append(_row(arm, suite, f"task-{number}", resolved, steps, sent, draw))
    machine = {"cpus": 2, "platform": "Linux x86_64", "python": "3.11.9"}
    sessions = [{"started": "2030-01-02", "command": "rlm-loop study run made_up", "machine": machine, "packages": {}}]
    return Results(rows, {"name": "made-up", "seeds": [0], "sessions": sessions}, "", recorded)


def _row(
    arm: str, suite: str, task: str, resolved: bool, steps: int, sent: list[int], draw: random.Random
) -> dict[str, Any]:
    seconds = steps * draw.uniform(4, 11)
    return {
        "study": "made-up", "arm": arm, "model": "local", "suite": suite, "task": task, "level": 1, "seed": 0,
        "resolved": resolved, "value": float(resolved), "stop": "answered", "answered": True, "reason": "",
        "answer": "42", "steps": steps, "input_tokens": sent[-1], "output_tokens": 90 * steps,
        "cached_tokens": sent[-1] // 2, "new_tokens": sent[-1] - sent[-1] // 2, "scaffold_tokens": sent[-1] // 4,
        "by_cause": {}, "cumulative_prompt_tokens": sent, "seconds": seconds, "working_seconds": seconds,
        "model_seconds": seconds, "tool_seconds": [0.1] * steps, "calls": steps, "cost": None, "malformed_turns": 0,
        "actions": steps, "tool_failures": int(steps > 4), "cell_errors": 0, "lenient_calls": 0, "trace": "",
        "error": None, "started": "2030-01-02T03:04:05+00:00",
    }  # fmt: skip
