"""The finding of this study, from its committed results: the table of arms into README.md.

python experiments/token_overhead/finding.py [--folder runs/token_overhead]
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_loop.study import Results

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import arms_against, write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """The table of arms, as Markdown."""
    return arms_against(results, "lean")


if __name__ == "__main__":
    write_finding(HERE, finding)
