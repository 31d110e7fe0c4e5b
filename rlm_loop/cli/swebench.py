"""`rlm-loop swebench`: predictions of a study for SWE-bench's harness, and its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.cli.setup import ANSWERED, NOT_ANSWERED, Misuse
from rlm_loop.cli.study import show_table
from rlm_loop.cli.terminal import echo, note

if TYPE_CHECKING:
    from rlm_loop.tasks.swebench import Report

app = typer.Typer(help="SWE-bench: predictions and evaluation.", no_args_is_help=True)

Arm = Annotated[str, Option("--arm", help="The arm of the study, where it has several.")]
StudyFolder = Annotated[str | None, Option("--study", help="A study's folder: show its table with the verdicts.")]
Model = Annotated[str, Option("--model", help="The model of the study, where it has several.")]
Seed = Annotated[int | None, Option("--seed", help="The seed of the study, where it has several.")]
SuiteName = Annotated[str, Option("--suite", help="The suite of the study, where it has several.")]
Dataset = Annotated[
    str, Option("--dataset", metavar="NAME|FILE", help="lite, verified, full, multilingual, hf://..., or a file.")
]


@app.command()
def predictions(
    folder: Annotated[str, Argument(help="The folder of a study's results.")],
    out: Annotated[str, Option(help="The file to write, in the official JSONL.")] = "predictions.jsonl",
    arm: Arm = "",
    model: Model = "",
    seed: Seed = None,
    suite: SuiteName = "",
    name: Annotated[str, Option(help="What stands as model_name_or_path.")] = "",
    crashed: Annotated[
        str, Option(help="Runs that crashed: 'leave out', or 'empty' for an empty patch.")
    ] = "leave out",
) -> int:
    """Write the patches of a study's arm in the form that the official harness reads."""
    from rlm_loop.study.compare.patches import study_predictions

    if crashed not in ("leave out", "empty"):
        raise Misuse(f"--crashed is 'leave out' or 'empty', not {crashed!r}")
    found = study_predictions(folder, arm, model=model, seed=seed, suite=suite, name=name, crashed=crashed)
    path = found.write(out)
    empty = sum(not p.model_patch.strip() for p in found.rows)
    echo(f"{len(found)} predictions, {empty} of them empty: {path}")
    for task, why in found.left_out.items():
        note(f"left out {task}: {why}")
    return ANSWERED if found.rows else NOT_ANSWERED


@app.command()
def evaluate(
    predictions_file: Annotated[str, Argument(metavar="PREDICTIONS", help="Official JSONL (or JSON).")],
    dataset: Dataset,
    split: Annotated[str, Option(help="The split of a set of the hub.")] = "test",
    run_id: Annotated[str, Option(help="Names the logs and the report.")] = "rlm-loop",
    ids: Annotated[list[str] | None, Option("--id", help="An instance id (may be repeated).")] = None,
    workers: Annotated[int, Option(min=1, help="Containers at a time.")] = 4,
    timeout: Annotated[int, Option(min=1, help="Seconds for one instance.")] = 1800,
    folder: Annotated[str, Option(help="Where logs and the report go.")] = ".",
    study: StudyFolder = None,
    arm: Arm = "",
    model: Model = "",
    seed: Seed = None,
    suite: SuiteName = "",
) -> None:
    """Judge predictions by the official harness, in containers."""
    from rlm_loop.tasks.swebench import evaluate_predictions

    options: dict[str, Any] = {"split": split, "run_id": run_id, "ids": ids, "timeout": timeout, "folder": folder}
    found = evaluate_predictions(predictions_file, dataset, workers=workers, **options)
    show_report(found, study, arm, model, seed, suite)


def show_report(found: Report, study: str | None, arm: str, model: str, seed: int | None, suite: str) -> None:
    """One line an instance, and the counts; then the table of a study with these verdicts, where one is named."""
    from rlm_loop.report import arm_table
    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import load_study
    from rlm_loop.study.compare.patches import with_report

    rows = [[v.instance_id, v.status, v.reason[:80]] for v in found.verdicts]
    rate = "" if found.rate is None else f" ({found.rate:.0%} of the submitted are resolved)"
    noted = [f"{found}{rate}", *([f"report: {found.path}"] if found.path else [])]
    show_table(Table("SWE-bench evaluation", ["instance", "status", "reason"], rows, noted, labels=3))
    if study is not None:
        echo()
        show_table(arm_table(with_report(load_study(study), found, arm, model=model, seed=seed, suite=suite)))
