"""The finding of this study, from its committed results: tables and sentences into README.md, and figure.png.

python experiments/headline/finding.py [--folder runs/headline]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rlm_loop.report import arm_table, suite_table
from rlm_loop.report.figures import paired_differences, save
from rlm_loop.report.tables.readme import write_between
from rlm_loop.study import Analysis, Results, load_study

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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="a study's results")
    results = load_study(parser.parse_args().folder)
    text = finding(results)
    write_between(HERE / "README.md", "finding", text)
    intervals = results.compare(analysis=PLAN).frame()
    save(paired_differences(results, margin=PLAN.margin, intervals=intervals), HERE / "figure.png")
    print(text)


if __name__ == "__main__":
    main()
