"""The finding of this study, from its committed results: a table and a sentence into README.md.

python experiments/mcp_as_code/finding.py [--folder runs/mcp_as_code]
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_loop.study import Results
from rlm_loop.traces import RunRecord

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import arms_against, write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """The table of both arms, and how often the server was called at all."""
    return arms_against(results, "lean") + "\n\n" + calls(results)


def calls(results: Results) -> str:
    """In how many episodes of each arm tools of the server were called, and how many calls there were."""
    found: list[str] = []
    for arm in results.arms:
        made = [_called(results.trace(row)) for row in results.complete_pairs if row["arm"] == arm]
        found.append(f"`{arm}` in {sum(map(bool, made))} of {len(made)} episodes, {sum(made)} times in all")
    return f"Tools of the server were called by {', by '.join(found)}."


def _called(run: RunRecord) -> int:
    """Calls out of cells, and function calls that named a tool of the server."""
    found = sum(len(event["calls"]) for event in run.of("cell_calls"))
    for event in run.of("turn"):
        for action, observation in zip(event["actions"], event["observations"], strict=False):
            known = (observation.get("failure") or {}).get("kind") != "unknown_tool"
            found += action["is"] == "CallTool" and action["name"] != "final_answer" and known
    return found


if __name__ == "__main__":
    write_finding(HERE, finding)
