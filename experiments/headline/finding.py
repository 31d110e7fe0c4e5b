"""The finding of this study, from its committed results: tables and sentences into README.md, and figure.png.

python experiments/headline/finding.py [--folder runs/headline]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rlm_loop.report import arm_table, suite_table
from rlm_loop.report.figures import paired_differences, save
from rlm_loop.study import Results, load_study

HERE = Path(__file__).resolve().parent
BASELINE = "react-text"
BEGIN, END = "<!-- finding: written by finding.py -->\n", "<!-- end of finding -->"


def finding(results: Results) -> str:
    """Tables and sentences, as Markdown."""
    compared = results.compare(BASELINE)
    said = "\n".join(f"- {sentence}" for sentence in compared.sentences())
    tables = [table(results, BASELINE).to_markdown() for table in (arm_table, suite_table)]
    return "\n\n".join([said, *tables])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="a study's results")
    results = load_study(parser.parse_args().folder)
    readme = HERE / "README.md"
    before, _, rest = readme.read_text("utf-8").partition(BEGIN)
    text = finding(results)
    readme.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", "utf-8")
    save(paired_differences(results, baseline=BASELINE), HERE / "figure.png")
    print(text)


if __name__ == "__main__":
    main()
