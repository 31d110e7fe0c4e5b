"""`rlm-loop study`: run an experiment, go on with it, read it."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm_loop.commands.setup import INTERRUPTED, Misuse, as_json, notes, results, setup_of

if TYPE_CHECKING:
    from rlm_loop.report.table import Table
    from rlm_loop.study import Results, Study

app = typer.Typer(help="Studies: arms x models x tasks x seeds, resumable.", no_args_is_help=True)

Experiment = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="A file that defines study(), its folder, or a name in experiments/.")
]
HalfRun = Annotated[str | None, typer.Option("--half", help="As it was run.")]
ChosenRun = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="As it was run, where it was given.")
]
Folder = Annotated[str, typer.Argument(help="The folder of a study's results.")]


@app.command("resume", help="The same as run: episodes that have a row are skipped; --retry-failed for failed ones.")
@app.command("run")
def run(
    context: typer.Context,
    experiment: Experiment,
    out: Annotated[str | None, typer.Option("--out", help="Where results go; default runs/NAME.")] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Passed to the experiment.")] = None,
    half: Annotated[str | None, typer.Option("--half", help="development or held; passed to the experiment.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Tasks at most, of the suites in turn.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="Start no further task after this.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Cells at a time; default 1, or what the executor takes.")
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor",
            metavar="WHERE",
            help="threads:N, processes:N, dask[:N], dask:ADDRESS or ray[:ADDRESS]; see docs/where_it_runs.md.",
        ),
    ] = None,
    chosen: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the experiment's study().")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed episodes again.")] = False,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="US dollars for the whole study, earlier runs included.")
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Model calls a minute at most.")] = None,
) -> int:
    """Run an experiment, or go on with it; Ctrl-C keeps what is finished."""
    options = _chosen(chosen or [], half)
    if model is not None:
        setup_of(context).models(model)  # a wrong name is said now, before anything is made
        options["model"] = model
    study = load(experiment, **options)
    return run_study(
        study,
        out or f"runs/{study.name}",
        limit=limit,
        seconds=seconds,
        jobs=jobs,
        executor=executor,
        retry_failed=retry_failed,
        max_cost=max_cost,
        rate=rate,
    )


def _chosen(pairs: list[str], half: str | None) -> dict[str, Any]:
    """`NAME=VALUE` pairs; a value that is JSON (a number, true, a list) is read as such, anything else is text."""
    if half not in (None, "development", "held"):
        raise Misuse(f"there is no half {half!r}; there are development and held")
    options: dict[str, Any] = {} if half is None else {"half": half}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Misuse(f"--set takes NAME=VALUE, not {pair!r}")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


@app.command()
def status(
    folder: Folder,
    json_: Annotated[bool, typer.Option("--json", help="Everything, as one line of JSON.")] = False,
) -> None:
    """How far a study is, arm by arm; it may be running in another terminal."""
    from dataclasses import asdict

    from rlm_loop.report.table import Table
    from rlm_loop.study import status as status_of

    found = status_of(folder)
    if json_:
        typer.echo(as_json(asdict(found)))
        return
    rows: list[list[str]] = []
    for arm in found.arms:
        shown = f"{arm.resolved} ({arm.unknown} not judged)" if arm.unknown else str(arm.resolved)
        rows.append([arm.arm, arm.model, str(arm.planned), str(arm.done), str(arm.failed), shown])
    show_table(Table(found.name, ["arm", "model", "planned", "finished", "failed", "resolved"], rows, labels=2))
    for line in found.lines():
        typer.echo(line)


@app.command("compact")
def compact_(
    folder: Folder,
    drop: Annotated[
        bool, typer.Option("--drop-lines", help="Remove results.jsonl once the Parquet file is read back as equal.")
    ] = False,
) -> None:
    """Write the rows of a study to results.parquet (needs the extra `parquet`)."""
    from rlm_loop.study import compact

    typer.echo(str(compact(folder, keep=not drop)))


@app.command()
def contract(
    experiment: Annotated[
        str, typer.Argument(metavar="FILE|NAME|FOLDER", help="An experiment, or the folder of a study's results.")
    ],
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Passed to the experiment.")] = None,
    half: HalfRun = None,
    chosen: ChosenRun = None,
    json_: Annotated[bool, typer.Option("--json", help="As contract.json has it.")] = False,
) -> int:
    """In what the arms of a study differ, by their first requests; no model is called.

    Exit code: 0 as declared (or nothing was declared), 1 not so.
    """
    from rlm_loop.study import contract as contract_of
    from rlm_loop.study.store import CONTRACT, read_contract

    found = read_contract(experiment) if (Path(experiment) / CONTRACT).is_file() else None
    if found is None:
        options = _chosen(chosen or [], half) | ({} if model is None else {"model": model})
        found = contract_of(load(experiment, **options))
    typer.echo(as_json(found.to_dict()) if json_ else str(found))
    return 0 if found.fair else 1


@app.command()
def report(
    folder: Folder,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The arm to compare with; default the first.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", help="Where the figure goes; default the folder itself.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables as Markdown.")] = False,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="OUT.html", help="Write one page instead, and OUT_traces/ beside it."),
    ] = None,
    no_traces: Annotated[bool, typer.Option("--no-traces", help="With --html: no pages of the traces.")] = False,
) -> None:
    """The tables of a study and its figure; or, with --html, a page with all that is known of it."""
    from rlm_loop.report import arm_table, save_figure, suite_table, target_table
    from rlm_loop.study import load_study

    if html is not None:
        _write_page(folder, html, baseline, traces=not no_traces)
        return
    found = load_study(folder)
    for table in (arm_table(found, baseline), suite_table(found, baseline), target_table(found, baseline)):
        show_table(table, markdown=markdown)
        typer.echo()
    for path in save_figure(found, out or folder):
        notes().print(f"figure: {path}", markup=False, soft_wrap=True)


def _write_page(folder: str, html: str, baseline: str | None, *, traces: bool) -> None:
    from tqdm import tqdm

    from rlm_loop.report.study_page import trace_folder, write_study_page

    typer.echo(
        write_study_page(
            folder,
            html,
            baseline=baseline,
            traces=traces,
            progress=lambda found: tqdm(found, desc="traces", unit="", disable=None, leave=False),
        )
    )
    if traces:
        notes().print(f"traces: {trace_folder(html)}", markup=False, soft_wrap=True)


@app.command()
def failures(
    folder: Folder,
    experiment: Experiment,
    half: HalfRun = None,
    chosen: ChosenRun = None,
    by: Annotated[str | None, typer.Option("--by", help="size, family, suite or task; default the first.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One row an episode, as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """Why tasks failed.  Long contexts: never looked, looked in part, misread, computed wrongly.  Patches: never found
    the file, edit rejected, wrong fix, ran out, gave up ..."""
    from rlm_loop.patching import diagnose_patches
    from rlm_loop.report import failure_table, patch_failure_table
    from rlm_loop.study import diagnose_episodes, load_study

    suites = load(experiment, **_chosen(chosen or [], half)).suites
    patches = any(task.workspace is not None for suite in suites for task in suite)
    known = ("suite", "task") if patches else ("size", "family", "suite", "task")
    if by not in (None, *known):
        raise Misuse(f"--by {by} is none of {', '.join(known)}")
    episodes = (diagnose_patches if patches else diagnose_episodes)(load_study(folder), suites)
    if json_:
        for row in episodes:
            typer.echo(as_json(row))
        return
    table = (patch_failure_table if patches else failure_table)(episodes, by or known[0])
    show_table(table, markdown=markdown)


@app.command()
def anytime(
    folder: Folder,
    experiment: Experiment,
    half: HalfRun = None,
    chosen: ChosenRun = None,
    out: Annotated[str | None, typer.Option("--out", help="Where figure and scores go; default the folder.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """What a smaller budget would have given: every state of every checkout is scored, each distinct patch once."""
    from rlm_loop.patching import anytime_of, load_scores, save_scores
    from rlm_loop.report import anytime_table, save_anytime_figure
    from rlm_loop.study import load_study

    suites = load(experiment, **_chosen(chosen or [], half)).suites
    found, there = load_study(folder), Path(out or folder)
    try:
        scores = load_scores(there / "scores.json")
    except ValueError as error:
        raise Misuse(str(error)) from error
    before = len(scores)
    try:
        runs = anytime_of(found, suites, scores=scores, progress=True)
    finally:  # what was judged until Ctrl-C is kept
        if len(scores) > before:
            save_scores(there / "scores.json", scores)
    if not any(runs.values()):
        raise Misuse(f"no task of {experiment} has a workspace and was finished by every arm in {folder}")
    show_table(anytime_table(runs), markdown=markdown)
    for path in save_anytime_figure(runs, there):
        notes().print(f"figure: {path}", markup=False, soft_wrap=True)


def load(experiment: str, **options: Any) -> Study:
    """The study of a file, a folder with a `study.py`, or a name in `experiments/`."""
    from rlm_loop.study import StudyError, load_study_file

    named = Path("experiments") / experiment
    where = named if not Path(experiment).exists() and named.exists() else Path(experiment)
    if not where.exists():
        there = sorted(p.parent.name for p in Path("experiments").glob("*/study.py"))
        known = f"; experiments/ has {', '.join(there)}" if there else ""
        raise StudyError(f"there is no experiment {experiment}{known}")
    return load_study_file(where, **options)


def run_study(study: Study, folder: str, **options: Any) -> int:
    """Run what is left of a study with progress on standard error, then show its table; `options` as `Study.run`."""
    from rlm_loop.study import StudyInterrupted, StudyWarning, Unfair

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", StudyWarning)
            warnings.showwarning = _showing(StudyWarning)
            found = study.run(folder, progress=True, **options)
    except StudyInterrupted as stopped:
        typer.echo(stopped.message, err=True)
        return INTERRUPTED
    except Unfair as unfair:
        typer.echo(unfair.diff, err=True)
        raise
    show_results(found)
    return 0


def _showing(kind: type[Warning]) -> Callable[..., None]:
    """Warnings of a kind as a line each; all others as before."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
        if issubclass(category, kind):
            typer.echo(f"note: {message}", err=True)
        else:
            usual(message, category, filename, lineno, *rest)

    return show


def show_results(found: Results) -> None:
    """The table of the arms, and where everything lies."""
    from rlm_loop.report import arm_table, save_figure
    from rlm_loop.study import StudyError

    console = notes()
    if not found.compared:
        if found.crashed:
            raise StudyError(f"no task was finished by every arm; the first crash: {found.crashed[0]['error']}")
        raise StudyError("no task was finished by every arm yet; run the same command again to go on")
    show_table(arm_table(found))
    figure = save_figure(found, found.folder)[0]
    for label, where in (
        ("plot", figure),
        ("results", Path(found.folder) / "results.jsonl"),
        ("traces", Path(found.folder) / "traces"),
    ):
        console.print(f"{label + ':':<9}{where}", markup=False, soft_wrap=True)
    console.print(
        f"one run:  rlm-loop trace show {Path(found.folder) / found.rows[0]['trace']}", markup=False, soft_wrap=True
    )


def show_table(table: Table, *, markdown: bool = False) -> None:
    """A table: drawn where it fits the terminal, in plain characters elsewhere."""
    if markdown:
        typer.echo(table.to_markdown())
    elif sys.stdout.isatty():
        results().print(table)
    else:
        typer.echo(table.to_text())
