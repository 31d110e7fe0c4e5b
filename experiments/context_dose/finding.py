"""The finding of this study, from its results: tables and sentences into README.md, and a figure.

python experiments/context_dose/finding.py [--folder runs/context_dose]
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import Table, arm_table, dose_response
from rlm_loop.study import Results
from rlm_loop.study.compare.pair_keys import is_resolved

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import write_finding

HERE = Path(__file__).resolve().parent
TODAY = 60  # the default when this was begun


def finding(results: Results) -> str:
    """The choice by the rule of README.md, the doses of each loop against today's, and all arms, as Markdown."""
    bases = list(dict.fromkeys(row["arm_base"] for row in results.rows))
    parts = [choice(results), totals(results)]
    for base in bases:
        mine = [arm for arm in results.arms if arm.partition("[")[0] == base]
        compared = results.only(*mine).compare(f"{base}[context_tokens={TODAY}]")
        parts.append("\n".join(f"- {sentence}" for sentence in compared.sentences()))
    figure_line = "![Tasks resolved and tokens a task by the tokens that tell of the context](figures/finding.png)"
    return "\n\n".join([*parts, arm_table(results).to_markdown(), figure_line])


def by_dose(results: Results) -> dict[int, tuple[int, int, int]]:
    """By dose over all loops: tasks resolved, episodes, prompt and output tokens together."""
    found: dict[int, tuple[int, int, int]] = {}
    for row in results.complete_pairs:
        resolved, count, tokens = found.get(dose := int(row["factors"]["context_tokens"]), (0, 0, 0))
        spent = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
        found[dose] = (resolved + bool(is_resolved(row)), count + 1, tokens + spent)
    return dict(sorted(found.items()))


def chosen_dose(results: Results) -> int:
    """The dose with most tasks resolved over all loops; of equals the one with fewest tokens."""
    found = by_dose(results)
    return min(found, key=lambda dose: (-found[dose][0], found[dose][2]))


def choice(results: Results) -> str:
    """What the rule says of the default."""
    dose = chosen_dose(results)
    if dose == TODAY:
        return f"By the rule the default stays {TODAY} tokens."
    return f"By the rule the default becomes {dose} tokens (it was {TODAY})."


def totals(results: Results) -> str:
    rows = [
        [str(dose), f"{resolved} of {count}", f"{tokens / count:,.0f}"]
        for dose, (resolved, count, tokens) in by_dose(results).items()
    ]
    return Table(
        "All loops together", ["tokens told", "resolved", "prompt and output tokens a task"], rows
    ).to_markdown()


def figure(results: Results) -> Figure:
    """Tasks resolved and tokens spent by dose, a line for each loop."""
    return dose_response(results, factor="context_tokens")


if __name__ == "__main__":
    write_finding(HERE, finding, figure)
