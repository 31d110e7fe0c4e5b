"""The finding of this study, from its committed results: the table of arms into README.md, and a figure.

python experiments/token_overhead/finding.py [--folder runs/token_overhead]
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_loop.report import arm_table, resolve_rates
from rlm_loop.study import Results

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """The table of arms, as Markdown."""
    return arm_table(results, "lean").to_markdown()


if __name__ == "__main__":
    write_finding(HERE, finding, resolve_rates)
