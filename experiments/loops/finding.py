"""Write the findings of both parts into README.md, and the figure: `python finding.py`.  No model is called."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.loops.study import PLAN
from experiments.shared import arms_against
from rlm_loop.report import Table, write_between
from rlm_loop.report.figures import resolve_rates, save
from rlm_loop.study import Results, load_study
from rlm_loop.study.compare.contrast import p_equals
from rlm_loop.study.compare.pair_keys import is_resolved

HERE = Path(__file__).resolve().parent
#: The folder of each part.
PARTS = {"questions": "results", "repairs": "results-repairs"}


def finding(results: Results) -> str:
    """Return the arms, their differences from the code loop, the declared tests, and the suites."""
    claims = [c for c in results.compare(analysis=PLAN).contrasts if c.measure == "resolved" and c.p_holm is not None]
    told = ", ".join(f"{c.arm} {p_equals(c.p_holm)}" for c in claims)
    declared = f"Against `code`, exact McNemar tests after Holm: {told}."
    return "\n\n".join([arms_against(results, "code"), declared, by_suite(results)])


def by_suite(results: Results) -> str:
    """Return the tasks that each arm resolved in each suite."""
    suites = list(dict.fromkeys(row["suite"] for row in results.rows))
    rows = [[arm, *(_count(results, arm, suite) for suite in suites)] for arm in results.arms]
    return Table("By suite", ["arm", *suites], rows).to_markdown().strip()


def _count(results: Results, arm: str, suite: str) -> str:
    own = [row for row in results.rows if row["arm"] == arm and row["suite"] == suite]
    return f"{sum(bool(is_resolved(row)) for row in own)} of {len(own)}"


def main() -> None:
    found = {part: load_study(HERE / folder) for part, folder in PARTS.items() if (HERE / folder).is_dir()}
    text = "\n\n".join(f"### {part.capitalize()}\n\n{finding(results)}" for part, results in found.items())
    write_between(HERE / "README.md", "finding", text)
    for part, results in found.items():
        save(resolve_rates(results), HERE / "figures" / f"{part}.png")
    print(text)


if __name__ == "__main__":
    main()
