"""`rlm-loop study`: run an experiment, go on with it, read it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from rlm_loop.cli import study_files
from rlm_loop.cli.experiments import (
    ChosenRun,
    Experiment,
    Folder,
    SplitRun,
    chosen_options,
    load,
    show_table,
)
from rlm_loop.cli.setup import Misuse, as_json, setup_of
from rlm_loop.cli.study_models import agreed_to_spend, run_studies, say_estimates
from rlm_loop.cli.study_report import report
from rlm_loop.cli.terminal import echo, fitting

app = typer.Typer(help="Studies: arms x models x tasks x seeds, resumable.", no_args_is_help=True)
app.command("init")(study_files.init)


@app.command("run")
def run(
    context: typer.Context,
    experiment: Experiment,
    out: Annotated[str | None, Option(help="Where results go; default runs/NAME.")] = None,
    model: Annotated[str | None, Option(metavar="NAME", help="Passed to the experiment.")] = None,
    models: Annotated[
        str | None, Option(metavar="NAME,NAME", help="Several, one after the other, into one folder.")
    ] = None,
    split: Annotated[str | None, Option("--split", help="dev or test; for the experiment.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Tasks at most, of the suites in turn.")] = None,
    seconds: Annotated[float | None, Option(min=0, help="Start no further task after this.")] = None,
    jobs: Annotated[int | None, Option(min=1, help="Episodes at a time, in threads; default 1.")] = None,
    chosen: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="An option of the experiment's study().")
    ] = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Run failed episodes again.")] = False,
    max_cost: Annotated[
        float | None, Option(min=0, help="US dollars for the whole study, earlier runs included.")
    ] = None,
    max_tokens: Annotated[
        int | None, Option(min=0, help="Tokens in and out for the whole study, earlier runs included.")
    ] = None,
    estimate: Annotated[
        bool, Option("--estimate", help="Only say what is left to run, and what it would use.")
    ] = False,
    yes: Annotated[bool, Option("--yes", help="With --models: do not ask before it is spent.")] = False,
    mixed: Annotated[
        bool, Option("--mixed", help="Go on with rows of other code of this package; noted in study.json.")
    ] = False,
) -> int:
    """Run an experiment, or go on with it; Ctrl-C keeps what is finished."""
    options = chosen_options(chosen or [], split)
    if model is not None and models is not None:
        raise Misuse("--model and --models are both given: name them all in --models")
    names = [model] if models is None else list(dict.fromkeys(filter(None, map(str.strip, models.split(",")))))
    for name in names:
        if name is not None:
            setup_of(context).models(name)  # a wrong name is said now, before anything is made
    studies = [load(experiment, **options, **({} if name is None else {"model": name})) for name in names]
    folder = out or f"runs/{studies[0].name}"
    if estimate or models is not None:
        say_estimates(experiment, studies, folder, limit=limit, max_cost=max_cost)
    if estimate or (models is not None and not yes and not agreed_to_spend()):
        return 0
    return run_studies(
        studies,
        folder,
        limit=limit,
        seconds=seconds,
        jobs=jobs,
        retry_failed=retry_failed,
        max_cost=max_cost,
        max_tokens=max_tokens,
        mixed=mixed,
    )


@app.command()
def status(
    folder: Folder, json_: Annotated[bool, Option("--json", help="Everything, as one line of JSON.")] = False
) -> None:
    """How far a study is, arm by arm; it may be running in another terminal."""
    from dataclasses import asdict

    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import status as status_of

    found = status_of(folder)
    if json_:
        echo(as_json(asdict(found)))
        return
    rows: list[list[str]] = []
    for arm in found.arms:
        shown = f"{arm.resolved} ({arm.unknown} not judged)" if arm.unknown else str(arm.resolved)
        rows.append([arm.arm, arm.model, str(arm.planned), str(arm.done), str(arm.failed), shown])
    show_table(Table(found.name, ["arm", "model", "planned", "finished", "failed", "resolved"], rows, labels=2))
    for line in found.lines():
        echo(fitting(line))


@app.command("rescore")
def rescore_(
    folder: Folder, json_: Annotated[bool, Option("--json", help="A line of JSON for each run.")] = False
) -> None:
    """Score recorded runs again, by each contract: what was left behind, and the text of the answer.

    No model is called.  Tasks that ask for a value have one contract, the answer.
    """
    from collections import Counter

    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import rescore

    found: dict[tuple[str, str], Counter[str]] = {}
    for row in rescore(folder):
        if json_:
            echo(as_json(row))
        by = row["by_submission"]
        found.setdefault((row["suite"], row["arm"]), Counter()).update(
            {"n": 1, "recorded": row["recorded"] is True, **{name: said is True for name, said in by.items()}}
        )
    if not json_:
        columns = ("n", "recorded", "artifact", "answer")
        rows = [[*key, *(str(found[key][c]) if c in found[key] else "" for c in columns)] for key in sorted(found)]
        show_table(Table("Resolved, by contract", ["suite", "arm", *columns], rows, labels=2))


@app.command()
def check(
    experiment: Annotated[
        str, Argument(metavar="FILE|NAME|FOLDER", help="An experiment, or the folder of a study's results.")
    ],
    model: Annotated[str | None, Option(metavar="NAME", help="Passed to the experiment.")] = None,
    split: SplitRun = None,
    chosen: ChosenRun = None,
    json_: Annotated[bool, Option("--json", help="As contract.json has it.")] = False,
) -> int:
    """In what the arms of a study differ, by their first requests; no model is called.

    Exit code: 0 as declared (or nothing was declared), 1 not so.
    """
    from rlm_loop.study import fairness_check as checked
    from rlm_loop.study.store.reading import FAIRNESS, read_fairness_check

    found = read_fairness_check(experiment) if (Path(experiment) / FAIRNESS).is_file() else None
    if found is None:
        options = chosen_options(chosen or [], split) | ({} if model is None else {"model": model})
        found = checked(load(experiment, **options))
    echo(as_json(found.to_dict()) if json_ else fitting(found))
    return 0 if found.fair else 1


app.command()(report)
