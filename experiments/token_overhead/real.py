"""The session of the real packages, as ../peers metered it, in the form of scripted.csv: results/real.csv.

    python experiments/token_overhead/real.py             # after: python experiments/peers/overhead.py

Kept are mellea's `react` and our lean loop, the first 25 calls of each.  Both only add to their prompts, so what a call
has of a cause was sent before up to what the call before it had.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parent / "peers" / "results" / "overhead.jsonl"
TURNS = 25

LOOPS = {"mellea_react": "mellea-react", "ours_lean": "lean"}
#: The causes of ../peers in the words of the ledger.
CAUSES = {"reply": "assistant", "observation": "tool_result", "scaffold": "scaffold:frame"}


def tidy(sessions: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row an arm, turn and cause, as `report.overhead_by_turn` reads them; sessions that broke off are left out."""
    for session in sessions:
        arm = LOOPS.get(session["peer"])
        if arm is None or session["error"] or session["calls"] < TURNS:
            continue
        for turn in range(1, TURNS + 1):
            for cause, counts in session["tokens"].items():
                before, now = list(pairwise([0, *counts]))[turn - 1]
                if now:
                    yield {
                        "arm": arm,
                        "turn": turn,
                        "cause": CAUSES.get(cause, cause),
                        "tokens": now,
                        "resent": min(before, now),
                    }


def main() -> int:
    if not SOURCE.is_file():
        print(f"there is no {SOURCE.name} of the peers yet: run experiments/peers/overhead.py first", file=sys.stderr)
        return 1
    rows = list(tidy(json.loads(line) for line in SOURCE.read_text("utf-8").splitlines() if line.strip()))
    if {row["arm"] for row in rows} != set(LOOPS.values()):
        print(
            "the peers' results lack a whole session of both loops: run experiments/peers/overhead.py", file=sys.stderr
        )
        return 1
    with (HERE / "results" / "real.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    from scripted import recorded

    from rlm_loop.report import cause_table, overhead_by_turn, overhead_table
    from rlm_loop.report.figures import save

    frame = recorded("real")
    save(overhead_by_turn(frame, arms=("lean", "mellea-react")), HERE / "figures" / "real.png")
    print(overhead_table(frame, arms=("lean", "mellea-react")).to_markdown())
    print(cause_table(frame, "mellea-react", beyond="lean").to_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
