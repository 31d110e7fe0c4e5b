"""The finding of this study, from its committed results: tables and sentences into README.md, and a figure.

python experiments/headline/finding.py [--folder runs/headline]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import Table
from rlm_loop.report.figures import paired_differences
from rlm_loop.study import Analysis, Results, rescore

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import arms_against, suite_named, write_finding

HERE = Path(__file__).resolve().parent
#: By what the first report judged; it was written down after the run had begun, so nothing here is confirmed.
PLAN = Analysis(baseline="react-text", margin=0.03, family=("resolved", "input_tokens"), missing="worst")
BASELINE = PLAN.baseline


def finding(results: Results) -> str:
    """The arms by one contract for every loop, and tasks by suite under both contracts, as Markdown."""
    fair = alike(results)
    return arms_against(fair, BASELINE) + "\n\n" + by_suite(fair, results)


def by_suite(fair: Results, text: Results) -> str:
    """Tasks resolved by suite: by what was left behind, and in brackets by the text of the answer if that differs."""
    of, bare = counts(fair), counts(text)
    cells = {key: f"{of[key]}" if of[key] == bare[key] else f"{of[key]} ({bare[key]})" for key in of}
    suites = list(dict.fromkeys(suite for suite, _ in of))
    rows = [[suite, *(cells[suite, arm] for arm in fair.arms)] for suite in suites]
    return Table("By suite, in brackets by the text of the answer", ["suite", *fair.arms], rows).to_markdown()


def counts(results: Results) -> dict[tuple[str, str], int]:
    """Tasks resolved by suite and arm."""
    found: dict[tuple[str, str], int] = {}
    for row in results.complete_pairs:
        key = (row["suite"], row["arm"])
        found[key] = found.get(key, 0) + bool(row["resolved"])
    return found


def alike(results: Results) -> Results:
    """The same runs, scored by what each left behind where code is asked for."""
    return replace(results, rows=list(rescore(results.folder, suite=lambda name: suite_named(*name.split("/")))))


def figure(results: Results) -> Figure:
    """How the other arms differ from the baseline, by what each run left behind."""
    fair = alike(results)
    return paired_differences(fair, margin=PLAN.margin, intervals=fair.compare(analysis=PLAN).frame())


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
