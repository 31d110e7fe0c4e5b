"""The finding of this study, from its committed results: tables and sentences into README.md, and a figure.

python experiments/headline/finding.py [--folder runs/headline]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import arm_table, suite_table
from rlm_loop.report.figures import paired_differences
from rlm_loop.study import Analysis, Results, rescore

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import suite_named, write_finding

HERE = Path(__file__).resolve().parent
#: By what the first report judged; it was written down after the run had begun, so nothing here is confirmed.
PLAN = Analysis(baseline="react-text", margin=0.03, family=("resolved", "input_tokens"), missing="worst")
BASELINE = PLAN.baseline


def finding(results: Results) -> str:
    """Tables and sentences, as Markdown: by the contract that is the same for every loop, then as first reported."""
    fair = alike(results)
    return "\n\n".join(
        [
            "**By what each run left behind** (one contract for every loop, chosen after the run: exploratory)",
            _sentences(fair),
            *(table(fair, BASELINE).to_markdown() for table in (arm_table, suite_table)),
            "**As first reported: by the text of the answer, where HumanEval asks for code** (the margin was written "
            "down after the run had begun: exploratory as well)",
            _sentences(results),
            suite_table(results, BASELINE).to_markdown(),
        ]
    )


def alike(results: Results) -> Results:
    """The same runs, scored by what each left behind where code is asked for."""
    return replace(results, rows=list(rescore(results.folder, suite=lambda name: suite_named(*name.split("/")))))


def _sentences(results: Results) -> str:
    return "\n".join(f"- {sentence}" for sentence in results.compare(analysis=PLAN).sentences())


def figure(results: Results) -> Figure:
    """How the other arms differ from the baseline, by what each run left behind."""
    fair = alike(results)
    return paired_differences(fair, margin=PLAN.margin, intervals=fair.compare(analysis=PLAN).frame())


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
