"""Count the tokens that each frame adds to a prompt, by turn and cause, and write results/cost.csv.

    python experiments/scaffold_length/cost.py            # counts anew, in a minute; reads the model's tokenizer only
    python experiments/scaffold_length/cost.py --table    # the table of what is committed; needs no model

Every prompt of the study is rendered with the chat template in the file of the local model and counted with its
tokenizer (`../peers/counter.py`), which gives the counts of the loaded model.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.accounting.ledger import Part
from rlm_loop.messages import Prompt
from rlm_loop.report.tables.table import Table

sys.path.append(str(Path(__file__).resolve().parent))  # its own modules
sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))  # the counter

from study import CHAINS, TURNS, study

HERE = Path(__file__).resolve().parent
COST = HERE / "results" / "cost.csv"
Row = dict[str, Any]


def rows(counts: Callable[[Prompt], Sequence[Part]], chains: int = CHAINS) -> list[Row]:
    """One row an arm, turn and cause: its tokens in the prompts of all chains together."""
    made = study(chains=chains)
    agents: Mapping[str, Any] = next(iter(made.agents().values()))
    found: list[Row] = []
    for arm, agent in agents.items():
        for turn, suite in zip(TURNS, made.suites, strict=True):
            by_cause: dict[str, int] = {}
            for task in suite:
                for part in counts(agent.first_request(task).prompt):
                    by_cause[part.cause] = by_cause.get(part.cause, 0) + part.tokens
            found += [
                {"arm": arm, "turn": turn, "chains": len(suite), "cause": cause, "tokens": tokens}
                for cause, tokens in sorted(by_cause.items())
                if tokens
            ]
    return found


def recorded() -> list[Row]:
    """The committed rows."""
    with COST.open(encoding="utf-8", newline="") as file:
        return [{**row, **{n: int(row[n]) for n in ("turn", "chains", "tokens")}} for row in csv.DictReader(file)]


def means(found: Iterable[Row]) -> dict[tuple[str, int], tuple[float, float]]:
    """By arm and turn: tokens of a whole prompt, and those of them that a frame or filler is."""
    sums: dict[tuple[str, int], list[float]] = {}
    for row in found:
        both = sums.setdefault((row["arm"], row["turn"]), [0.0, 0.0])
        share = row["tokens"] / row["chains"]
        both[0] += share
        both[1] += share if row["cause"].startswith("scaffold:") else 0
    return {key: (whole, frame) for key, (whole, frame) in sums.items()}


def table(found: Sequence[Row]) -> Table:
    """Tokens that an arm adds to the prompt of each turn, and the whole prompt of the last one."""
    cost = means(found)
    arms, turns = list(dict.fromkeys(a for a, _ in cost)), sorted({t for _, t in cost})
    lines = [
        [
            arm,
            *(f"{cost[arm, t][1]:,.0f}" for t in turns),
            f"{cost[arm, turns[-1]][0]:,.0f}",
            _share(cost[arm, turns[-1]]),
        ]
        for arm in arms
    ]
    columns = ["arm", *(f"turn {t}" for t in turns), f"prompt, turn {turns[-1]}", "of it frame"]
    return Table("Tokens of the frame in the prompt", columns, lines, ["Means of the chains; tokens of Qwen2.5-Coder."])


def _share(both: tuple[float, float]) -> str:
    return f"{both[1] / both[0]:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", action="store_true", help="only show what is committed")
    options = parser.parse_args()
    if not options.table:
        from counter import FileCounter

        from rlm_loop.models.weights import path

        found = rows(FileCounter(Path(path("local"))).measure)
        with COST.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    print(table(recorded()).to_markdown())


if __name__ == "__main__":
    main()
