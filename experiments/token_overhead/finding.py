"""The tables and the figure of a finished run, to be pasted into README.md.

    python experiments/token_overhead/finding.py [runs/token_overhead]     # default: the committed results/

The figure goes beside the results.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_loop.report import dose_table, save_dose_figure
from rlm_loop.study import StudyError, load_study


def main(folder: Path) -> int:
    try:
        results = load_study(folder)
        print(dose_table(results).to_markdown())
        for path in save_dose_figure(results, folder):
            print(path)
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results"))
