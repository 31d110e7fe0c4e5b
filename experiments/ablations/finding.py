"""The finding of this study, from its committed results: tables and sentences into README.md, and a figure.

python experiments/ablations/finding.py [--folder runs/ablations]
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_loop.report.figures import resolve_rates
from rlm_loop.study import Results

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import arms_against, write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """Each loop's changes against the loop as it is, and how often batching gave another first reply, as Markdown."""
    of = {loop: [arm for arm in results.arms if arm.partition("[")[0] == loop] for loop in ("code", "lean")}
    tables = [arms_against(results.only(*arms), loop) for loop, arms in of.items()]
    return "\n\n".join([*tables, batching(results)])


def batching(results: Results) -> str:
    """How often two arms that asked the same first question, at temperature 0, got another first reply."""
    first = {(r["arm"], r["task"]): next(results.trace(r).replies()) for r in results.rows}
    tasks = sorted({task for _, task in first})
    lines: list[str] = []
    for arm in ("code[max_history=4]", "code[require_code=True]"):
        pairs = [(first["code", task], first[arm, task]) for task in tasks]
        same = [(a, b) for a, b in pairs if a[1].messages == b[1].messages]
        other = sum(a[2].text != b[2].text for a, b in same)
        lines.append(
            f"`{arm}` got another first reply than `code` to the same first prompt in {other} of {len(same)} tasks"
        )
    return "Batching: " + ", and ".join(lines) + "."


if __name__ == "__main__":
    write_finding(HERE, finding, resolve_rates)
