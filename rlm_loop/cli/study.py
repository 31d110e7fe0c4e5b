"""`rlm-loop study`: run an experiment, go on with it, read it."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.cli.setup import INTERRUPTED, Markdown, Misuse, as_json, setup_of
from rlm_loop.cli.terminal import echo, fitting, note, results, room

if TYPE_CHECKING:
    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import Results, Study
    from rlm_loop.study.run.estimate import RunEstimate

_BORDERS = 20  # characters that a drawn table takes besides its cells
Experiment = Annotated[
    str, Argument(metavar="FILE|NAME", help="A file that defines study(), its folder, or a name in experiments/.")
]
SplitRun = Annotated[str | None, Option("--split", help="As it was run.")]
ChosenRun = Annotated[
    list[str] | None, Option("--set", metavar="NAME=VALUE", help="As it was run, where it was given.")
]
Folder = Annotated[str, Argument(help="The folder of a study's results.")]


def chosen_options(pairs: list[str], split: str | None) -> dict[str, Any]:
    """`NAME=VALUE` pairs; a value that is JSON (a number, true, a list) is read as such, anything else is text."""
    if split not in (None, "dev", "test"):
        raise Misuse(f"there is no split {split!r}; there are dev and test")
    options: dict[str, Any] = {} if split is None else {"split": split}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Misuse(f"--set takes NAME=VALUE, not {pair!r}")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def load(experiment: str, **options: Any) -> Study:
    """The study of a file, a folder with a `study.py`, or a name in `experiments/`.

    Raises `Misuse` for a value of `options` that its code refuses.
    """
    from rlm_loop.study import StudyError, load_study_file

    where = place_of(experiment)
    if not where.exists():
        there = sorted(p.parent.name for p in Path("experiments").glob("*/study.py"))
        known = f"; experiments/ has {', '.join(there)}" if there else "; `rlm-loop study init` writes one"
        raise StudyError(f"there is no experiment {experiment}{known}")
    try:
        return load_study_file(where, **options)
    except (TypeError, ValueError) as error:
        if not options:
            raise
        raise Misuse(f"{experiment}: {error} (given: {', '.join(f'{o}={v!r}' for o, v in options.items())})") from error


def place_of(experiment: str) -> Path:
    """The file or folder of an experiment, which may not be there."""
    named = Path("experiments") / experiment
    return named if not Path(experiment).exists() and named.exists() else Path(experiment)


def run_study(study: Study, folder: str, *, show: bool = True, **options: Any) -> int:
    """Run what is left of a study with progress on standard error, then show its table (unless `show` is off).

    `options` are those of `Study.run`.
    """
    from rlm_loop.study import StudyInterrupted, StudyWarning, Unfair

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", StudyWarning)
            warnings.showwarning = _showing(StudyWarning)
            found = study.run(folder, progress=True, **options)
    except StudyInterrupted as stopped:
        note(stopped.message)
        return INTERRUPTED
    except Unfair as unfair:
        note(unfair.diff)
        raise
    if show:
        show_results(found)
    return 0


def _showing(kind: type[Warning]) -> Callable[..., None]:
    """Warnings of a kind as a line each; all others as before."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
        if issubclass(category, kind):
            note(f"note: {message}")
        else:
            usual(message, category, filename, lineno, *rest)

    return show


def show_results(found: Results) -> None:
    """The table of the arms, and where everything lies."""
    from rlm_loop.report import arm_table, resolve_against_tokens, save
    from rlm_loop.study import StudyError

    if not found.complete_pairs:
        if found.crashed:
            raise StudyError(f"no task was tried by every arm; the first crash: {found.crashed[0]['error']}")
        raise StudyError("no task was tried by every arm yet; run the same command again to go on")
    if found.crashes:
        note(found.crashes)
    show_table(arm_table(found))
    plot = save(resolve_against_tokens(found), Path(found.folder) / "figure")[0]
    for label, where in (
        ("plot", plot),
        ("results", Path(found.folder) / "results.jsonl"),
        ("traces", Path(found.folder) / "traces"),
    ):
        note(f"{label + ':':<9}{where}")
    note(f"one run:  rlm-loop trace show {Path(found.folder) / found.rows[0]['trace']}")


def show_table(table: Table, *, markdown: bool = False) -> None:
    """A table: drawn where it fits the terminal, in plain characters elsewhere; a pipe gets whole lines."""
    if markdown:
        echo(table.to_markdown())
    elif sys.stdout.isatty() and len(max(table.to_text().splitlines(), key=len)) + _BORDERS < (room() or 0):
        results().print(table)
    else:
        echo(table.to_text(room()))


def say_estimates(
    experiment: str, studies: Sequence[Study], folder: str, *, limit: int | None, max_cost: float | None
) -> None:
    """Print what is left for each model and would be used, and the sum.

    Raises `StudyError` where a limit in dollars was given and the price of a model is not known.
    """
    from rlm_loop.study.run.estimate import estimates
    from rlm_loop.study.run.spending import unknown_price

    place = place_of(experiment)
    committed = (place if place.is_dir() else place.parent) / "results"
    found = [e for study in studies for e in estimates(study, folder, committed, limit)]
    for one in found:
        echo(fitting(one))
    echo(fitting(summed(found)))
    unpriced = [e.model for e in found if not e.priced and e.episodes]
    if max_cost is not None and unpriced:
        raise unknown_price(", ".join(unpriced), max_cost)


def summed(found: Sequence[RunEstimate]) -> str:
    """All models in a line: what will be spent."""
    episodes = sum(e.episodes for e in found)
    if not episodes:
        return "to be spent: nothing, all is done"
    left = [e for e in found if e.episodes]
    tokens = [
        None if e.input_tokens is None or e.output_tokens is None else e.input_tokens + e.output_tokens for e in left
    ]
    known = sum(t for t in tokens if t is not None)
    more = " and what is not known" if None in tokens else ""
    cost = f"${sum(e.cost for e in left if e.cost is not None):.4g}"
    unknown = [e.model for e in left if e.cost is None]
    rest = f" and what {', '.join(unknown)} cost{'s' if len(unknown) == 1 else ''}" if unknown else ""
    return f"to be spent: {known:,.0f} tokens{more}, {cost}{rest}, for {episodes} episodes"


def agreed_to_spend() -> bool:
    """Whether to go on: asked where somebody is there to be asked."""
    if not sys.stdin.isatty():
        return True
    note("Go on? [y/N]")
    if sys.stdin.readline().strip().casefold() in ("y", "yes"):
        return True
    note("nothing was run; --yes goes on without asking")
    return False


def run_studies(studies: Sequence[Study], folder: str, **options: Any) -> int:
    """Run the studies one after the other into one folder, which each extends by its model; the table comes last.

    `options` are those of `Study.run`.  What Ctrl-C or a limit ends is gone on with by the same command.
    """
    for study in studies:
        code = run_study(study, folder, show=study is studies[-1], **options)
        if code:
            return code
    return 0


app = typer.Typer(help="Studies: arms x models x tasks x seeds, resumable.", no_args_is_help=True)


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
def submit(
    experiment: Experiment,
    array: Annotated[int, Option(min=1, metavar="N", help="Jobs: each runs every N-th episode.")],
    time: Annotated[str, Option(metavar="TIME", help="Of each job at most: 90m, 4h, 2d.")],
    out: Annotated[
        str | None, Option(help="Where results go, on a disk that all nodes share; default runs/NAME.")
    ] = None,
    model: Annotated[str | None, Option(metavar="NAME", help="Passed to the experiment.")] = None,
    split: Annotated[str | None, Option("--split", help="dev or test; for the experiment.")] = None,
    chosen: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="An option of the experiment's study().")
    ] = None,
    cluster: Annotated[
        str | None, Option(help="slurm, or local: processes of this machine. Default: what is here.")
    ] = None,
    slurm: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="An option of sbatch, such as partition=gpu or mem=8G.")
    ] = None,
) -> None:
    """Send an experiment to Slurm as an array of jobs; the same command again sends what is left."""
    from functools import partial

    from rlm_loop.study.run.submit import minutes_of
    from rlm_loop.study.run.submit import submit as send

    options = chosen_options(chosen or [], split) | ({} if model is None else {"model": model})
    make = partial(load, str(place_of(experiment).absolute()), **options)
    try:
        minutes = minutes_of(time)
    except ValueError as error:
        raise Misuse(f"--time: {error}") from error
    given = {f"slurm_{name}": value for name, value in chosen_options(slurm or [], None).items()}
    folder = out or f"runs/{make().name}"
    sent = send(make, folder, array=array, minutes=minutes, cluster=cluster, **given)
    if not sent:
        note(f"nothing is left to run in {folder}")
        return
    echo(f"{len(sent)} jobs sent, the first is {sent[0].job_id}; rows go to {folder}/results, logs to {folder}/jobs")
    note(f"how far it is:  rlm-loop study status {folder}")


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
    folder: Folder,
    corrected: Annotated[
        str | None, Option("--with", metavar="FILE|NAME", help="The experiment with a corrected truth or scorer.")
    ] = None,
    json_: Annotated[bool, Option("--json", help="A line of JSON for each run.")] = False,
) -> None:
    """Score recorded runs again, by each contract: what was left behind, and the text of the answer.

    No model is called.  Tasks that ask for a value have one contract, the answer.  With a corrected experiment the new
    scores are kept, and the old ones beside them.
    """
    from collections import Counter

    if corrected is not None:
        found = [row for row in load(corrected).rescore(folder).rows if row.get("scored_before")]
        flipped = sum(row["resolved"] != row["scored_before"][-1]["resolved"] for row in found)
        note(f"{len(found)} rows have a corrected score, {flipped} of them another result")
        return

    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import rescore

    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rescore(folder):
        if json_:
            echo(as_json(row))
        by = row["by_submission"]
        counts.setdefault((row["suite"], row["arm"]), Counter()).update(
            {"n": 1, "recorded": row["recorded"] is True, **{name: said is True for name, said in by.items()}}
        )
    if not json_:
        columns = ("n", "recorded", "artifact", "answer")
        rows = [[*key, *(str(counts[key][c]) if c in counts[key] else "" for c in columns)] for key in sorted(counts)]
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
    """In what the arms of a study differ, by their first requests, and what it can show; no model is called.

    Exit code: 0 as declared (or nothing was declared), 1 not so.
    """
    from rlm_loop.study import StudyError
    from rlm_loop.study import fairness_check as checked
    from rlm_loop.study.store.reading import FAIRNESS, read_fairness_check

    study = None
    found = read_fairness_check(experiment) if (Path(experiment) / FAIRNESS).is_file() else None
    if found is None:
        options = chosen_options(chosen or [], split) | ({} if model is None else {"model": model})
        study = load(experiment, **options)
        found = checked(study)
    echo(as_json(found.to_dict()) if json_ else fitting(found))
    if study is not None and not json_:
        try:
            echo(f"\n{study.power()}")
        except StudyError as error:  # scipy is not installed
            note(str(error))
    return 0 if found.fair else 1


@app.command()
def report(
    folder: Folder,
    baseline: Annotated[
        str | None, Option(help="The arm to compare with; default that of its analysis, else the first.")
    ] = None,
    out: Annotated[str | None, Option(help="Where the figure goes; default the folder itself.")] = None,
    markdown: Markdown = False,
    html: Annotated[
        str | None, Option(metavar="OUT.html", help="Write one page instead, and OUT_traces/ beside it.")
    ] = None,
    no_traces: Annotated[bool, Option("--no-traces", help="With --html: no pages of the traces.")] = False,
) -> None:
    """The tables of a study and its figure; or, with --html, a page with all that is known of it."""
    from rlm_loop.report import arm_table, resolve_against_tokens, save, suite_table
    from rlm_loop.study import load_study

    if html is not None:
        _write_page(folder, html, baseline, traces=not no_traces)
        return
    found = load_study(folder)
    for table in (arm_table(found, baseline), suite_table(found, baseline)):
        show_table(table, markdown=markdown)
        echo()
    for path in save(resolve_against_tokens(found), Path(out or folder) / "figure"):
        note(f"figure: {path}")


def _write_page(folder: str, html: str, baseline: str | None, *, traces: bool) -> None:
    from tqdm import tqdm

    from rlm_loop.report.study import trace_folder, write_study_page

    echo(
        write_study_page(
            folder,
            html,
            baseline=baseline,
            traces=traces,
            progress=lambda found: tqdm(found, desc="traces", unit="", disable=None, leave=False),
        )
    )
    if traces:
        note(f"traces: {trace_folder(html)}")


#: Runs as it is.  Its tasks are ones whose truth a reader can check.
TEMPLATE = '''\
"""Two loops on three questions of yours: rlm-loop study run {file}"""

from rlm_loop import LeanAgent, Study, Task, ToolLoopAgent


def study(model=None):
    """`--model NAME` is handed in here; without it the agents take $RLM_LOOP_MODEL, else the local model."""
    tasks = [
        # Task(id, question, right answer).  Data goes into context=, which cells read as the variable `context`.
        Task("leap-years", "How many leap years are there from 1900 to 2000, both included?", 25),
        Task("errors", "How many lines of the context mention ERROR?", 2, context="ok\\nERROR a\\nok\\nERROR b\\n"),
        # A function may judge instead of a right answer: True or False of an attempt.
        Task("root", "What is the square root of 1225?", lambda attempt: str(attempt.answer).startswith("35")),
    ]
    arms = {{
        "code": ToolLoopAgent(max_steps=6),  # acts by blocks of Python in a REPL
        "calls": LeanAgent(max_steps=6),  # acts by function calls
    }}
    return Study(
        "{name}",
        arms,
        tasks,
        model=model,
        seeds=[0],  # each seed is another episode of every task with every arm
        # factors={{"max_steps": [3, 6]}},  # every arm with each value
        question="Which of the two loops solves my tasks, and for how many tokens?",
    )
'''


@app.command()
def init(
    file: Annotated[str, Argument(help="The file to write, or a folder for a study.py.")] = "study.py",
) -> None:
    """Write a short study file with comments, that runs as it is; nothing is overwritten."""
    path = Path(file)
    path = path / "study.py" if path.is_dir() or not path.suffix else path
    if path.suffix != ".py":
        raise Misuse(f"a study is a Python file, and {file} does not end in .py: name one, such as study.py")
    if path.exists():
        raise Misuse(f"{path} is there already: run it with `rlm-loop study run {path}`, or name another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.stem if path.stem != "study" else path.resolve().parent.name
    path.write_text(TEMPLATE.format(file=path, name="".join(c for c in name if c.isalnum() or c in "-_") or "mine"))
    echo(str(path))
    note(f"run it:  rlm-loop study run {path}")
