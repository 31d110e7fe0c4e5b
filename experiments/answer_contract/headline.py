"""The headline: this study as a table, with what it can and cannot mean, in README.md and docs/results.md.

It draws `figures/headline.png` too: what the arms resolve for their tokens.

python experiments/answer_contract/headline.py [--folder runs/answer_contract]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from rlm_loop.report import resolve_against_tokens, write_between
from rlm_loop.report.figures import save
from rlm_loop.study import Results, load_study, statistics
from rlm_loop.study.store.rows import Row

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.answer_contract.finding import by_contract
from experiments.shared import POOLED_FROM

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMES = {
    "code": "`ToolLoopAgent` (code blocks)",
    "lean-strict": "`LeanAgent`, only a call ends it",
    "lean": "`LeanAgent`",
    "react": "`ReActAgent`",
    "direct": "`DirectAgent` (asks again only after a cut reply)",
}
CAVEATS = (
    "The reader differed between arms: code in a fence was read forgivingly, code in a call strictly. *Read today* counts also the runs in which the first such reply holds right code for the "
    "one reader that all loops have now (`reread.py`; later turns are not played). The lead of code blocks over ReAct holds in both columns; whether lean resolves more than ReAct depends on the reader.",
    "All successes in HumanEval were right in the first code written. So the difference there is between ways to carry code in a reply, not between loops.",
    "`DirectAgent` saw 6,000 characters of files of tens of kB, so it cannot answer most questions about tables, and its difference varies by suite. It asked again in 41 of 128 tasks.",
    "In another study the same arm, run again, ended otherwise in 10 of the 77 pairs in which either run resolved the task.",
)


def headline(results: Results) -> str:
    """Return a table of the arms, most resolved first, and what it cannot mean, as Markdown."""
    fair = by_contract(results, "artifact")
    varies = {test.arm for test in fair.compare("react").interactions if test.p < POOLED_FROM}
    verdicts = {arm: [bool(r["resolved"]) for r in _in_order(fair, arm)] for arm in fair.arms}
    rows: list[tuple[int, str]] = []
    for arm in fair.arms:
        own = _in_order(fair, arm)
        resolved = sum(bool(row["resolved"]) for row in own)
        tokens = sum(row["input_tokens"] + row["output_tokens"] for row in own) / len(own)
        difference = "varies by suite" if arm in varies else "baseline"
        if arm not in (*varies, "react"):
            found = statistics.paired_difference(verdicts[arm], verdicts["react"], np.arange(len(own)))
            middle, low, high = (100 * float(value) for value in found)
            difference = f"{middle:+.1f} ({low:.1f} to {high:.1f})"
        read = sum(bool(row["resolved"]) for row in _in_order(by_contract(results, "read"), arm))
        rows.append((resolved, f"| {NAMES[arm]} | {resolved} | {difference} | {tokens:,.0f} | {read} |"))
    count = len({(row["suite"], row["task"]) for row in fair.complete_pairs})
    head = [
        f"Qwen2.5-Coder-1.5B on {count} tasks of five suites, scored by the code that ran where code is asked "
        "for, else by its answer:",
        "",
        f"| arm | resolved of {count} | points more than ReAct (95 %) | tokens a task | read today |",
        "|---|---:|---:|---:|---:|",
    ]
    table = [row for _, row in sorted(rows, key=lambda found: -found[0])]
    return "\n".join([*head, *table, "", *(f"- {caveat}" for caveat in CAVEATS)])


def _in_order(fair: Results, arm: str) -> list[Row]:
    rows = [row for row in fair.complete_pairs if row["arm"] == arm]
    return sorted(rows, key=lambda row: (row["suite"], row["task"]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the headline from the results of the study.")
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="results of this study")
    results = load_study(parser.parse_args().folder)
    text = headline(results)
    save(resolve_against_tokens(by_contract(results, "artifact")), HERE / "figures" / "headline.png")
    table, _, _ = text.partition("\n\n- ")  # the caveats are on the page of results
    write_between(ROOT / "README.md", "loops", table)
    write_between(ROOT / "docs" / "results.md", "loops", text)
    print(text)


if __name__ == "__main__":
    main()
