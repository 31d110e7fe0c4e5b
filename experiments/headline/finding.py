"""The finding of this study, from its committed results: tables and sentences into README.md, and a figure.

python experiments/headline/finding.py [--folder runs/headline]
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import arm_table, suite_table
from rlm_loop.report.figures import paired_differences
from rlm_loop.study import Analysis, Results

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import write_finding

HERE = Path(__file__).resolve().parent
#: The recorded run is older than `Study(analysis=...)`; this is what README.md declared before it, as in study.py.
PLAN = Analysis(baseline="react-text", margin=0.03, family=("resolved", "input_tokens"), missing="worst")
BASELINE = PLAN.baseline


def finding(results: Results) -> str:
    """Tables and sentences, as Markdown."""
    compared = results.compare(analysis=PLAN)
    said = "\n".join(f"- {sentence}" for sentence in compared.sentences())
    tables = [table(results, BASELINE).to_markdown() for table in (arm_table, suite_table)]
    return "\n\n".join([said, *tables])


def figure(results: Results) -> Figure:
    """How the other arms differ from the baseline."""
    return paired_differences(results, margin=PLAN.margin, intervals=results.compare(analysis=PLAN).frame())


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
