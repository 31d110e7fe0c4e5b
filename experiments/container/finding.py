"""Score the recorded replies with the other two readers, and write tables and figure: `python finding.py`.

Both models and all words are taken as far as they were run.  `results/readers.csv` has a verdict of each reader for
each reply.  No model is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.container.containers import CONTAINERS
from experiments.container.study import study
from rlm_loop.agents import outcome_of
from rlm_loop.models import ScriptedModel
from rlm_loop.report import Table, write_between
from rlm_loop.study import compare, load_study, read_trace
from rlm_loop.study.store.rows import Row
from rlm_loop.tasks import Attempt

HERE = Path(__file__).resolve().parent
#: The verdict of each reader on each reply.
VERDICTS = HERE / "results" / "readers.csv"
#: Folder of results: the model and the words.
RUNS = {
    "results": ("1.5B", 0),
    "results-0.5b": ("0.5B", 0),
    "results-words-1": ("1.5B", 1),
    "results-words-2": ("1.5B", 2),
}
#: The readers that score the replies again.
OTHERS = ("usual", "strict")


def readings(folder: Path, model: str, words: int) -> list[dict[str, Any]]:
    """Return a row for each reply: its verdict by the fair reader (as it was run) and by the other two."""
    plan: Any = study(words=words)
    tasks = {(suite.name, task.id): task for suite in plan.tasks for task in suite.tasks}

    def verdicts(row: Row) -> dict[str, Any]:
        task, key = tasks[row["suite"], row["task"]], {name: row[name] for name in ("suite", "task", "arm")}
        turns = outcome_of(read_trace(folder, row["trace"], run=row.get("trace_run") or None)).turns
        replies = [turn.reply for turn in turns]
        found = {
            reader: task.judge(
                Attempt.of(replace(plan.arms[row["arm"]], reader=reader, model=ScriptedModel(replies)).attempt(task))
            ).resolved
            for reader in OTHERS
        }
        return {"model": model, "words": words, **key, "fair": bool(row["resolved"]), **found}

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the code runs in processes of its own
        return list(pool.map(verdicts, load_study(folder).rows))


def counts(frame: Any) -> str:
    """Return resolved tasks by container and reader, and the paired difference from a fence of each."""
    lines: list[list[str]] = []
    for container in CONTAINERS:
        own = frame[frame.arm == container]
        line = [container, str(len(own))]
        for reader in ("fair", *OTHERS):
            line.append(str(int(own[reader].sum())))
            line.append("" if container == "fence" else difference(frame, container, reader))
        lines.append(line)
    columns = ["container", "tasks"]
    for reader in ("fair", *OTHERS):
        columns += [f"{reader} reader", "from fence"]
    return Table("Resolved", columns, lines).to_markdown().strip()


def difference(frame: Any, container: str, reader: str) -> str:
    """Return a paired difference from the fence in points, with its unadjusted interval."""
    rows = frame[frame.arm.isin([container, "fence"])].rename(columns={reader: "resolved"})
    effect = next(
        one
        for one in compare(rows[["suite", "task", "arm", "resolved"]].assign(seed=0), baseline="fence").contrasts
        if one.measure == "resolved"
    )
    if effect.estimate is None or effect.low is None or effect.high is None:
        return "not known"
    return f"{100 * effect.estimate:+.0f} ({100 * effect.low:.0f} to {100 * effect.high:.0f})"


def by_suite(frame: Any) -> str:
    """Return resolved tasks by container and suite, by each reader."""
    suites = list(dict.fromkeys(frame.suite))
    lines = [[c, *(_by_reader(own) for own in _parts(frame, c, suites))] for c in CONTAINERS]
    return Table("By suite", ["fair / usual / strict", *suites], lines).to_markdown().strip()


def _by_reader(own: Any) -> str:
    return f"{int(own.fair.sum())} / {int(own.usual.sum())} / {int(own.strict.sum())} of {len(own)}"


def _parts(frame: Any, container: str, suites: list[str]) -> list[Any]:
    return [frame[(frame.arm == container) & (frame.suite == suite)] for suite in suites]


def draw(frame: Any, path: Path) -> None:
    """Draw the readers' rates by container, a panel for each model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    models = list(dict.fromkeys(frame.model))
    figure, axes = plt.subplots(1, len(models), figsize=(4.5 * len(models), 3.2), sharey=True, squeeze=False)
    for ax, model in zip(axes[0], models, strict=True):
        own = (
            frame[frame.model == model].groupby("arm")[["fair", "usual", "strict"]].mean().reindex(list(CONTAINERS))
            * 100
        )
        at = np.arange(len(own))
        ax.bar(at - 0.27, own.fair, 0.27, label="fair reader", color="#0072B2")
        ax.bar(at, own.usual, 0.27, label="usual reader", color="#56B4E9", hatch="..")
        ax.bar(at + 0.27, own.strict, 0.27, label="strict reader", color="#E69F00", hatch="//")
        ax.set_xticks(at, list(own.index))
        ax.set_title(model)
    axes[0][0].set_ylabel("tasks resolved, %")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def finding(_: Any = None) -> str:
    """Return the table of each run, from the recorded verdicts."""
    return tables(counts)


def tables(of: Callable[[Any], str]) -> str:
    """Return what `of` makes of the verdicts of each run."""
    frame: Any = pd.read_csv(VERDICTS)
    return "\n\n".join(
        f"**{model}, words {words + 1}**\n\n{of(own)}"
        for (model, words), own in frame.groupby(["model", "words"], sort=False)
    )


def main() -> None:
    found = [row for name, how in RUNS.items() if (HERE / name).is_dir() for row in readings(HERE / name, *how)]
    frame: Any = pd.DataFrame(found)
    frame.to_csv(VERDICTS, index=False, lineterminator="\n")
    told()
    draw(frame[frame.words == 0], HERE / "figures" / "finding.png")
    print(finding())


def told() -> None:
    """Write the tables: all tasks into README.md, by suite into `tables.md`."""
    write_between(HERE / "README.md", "finding", finding())
    (HERE / "tables.md").write_text(f"# Tasks resolved by suite\n\n{tables(by_suite)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
