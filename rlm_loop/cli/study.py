"""`rlm-loop study`, `compare`, `swebench` and `demo`: run an experiment, go on with it, read it."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.cli.machine import fetch
from rlm_loop.cli.terminal import (
    INTERRUPTED,
    Markdown,
    Misuse,
    as_json,
    echo,
    fitting,
    note,
    show_table,
    write_page,
)

if TYPE_CHECKING:
    from rlm_loop.study import Results, Study

Experiment = Annotated[
    str, Argument(metavar="FILE|NAME", help="A file that defines study(), its folder, or a name in experiments/.")
]
Folder = Annotated[str, Argument(help="The folder of a study's results.")]
ModelOption = Annotated[str | None, Option("--model", metavar="NAME", help="Passed to the experiment.")]
SetOptions = Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help="An option of its study().")]
Out = Annotated[str | None, Option(help="Where results go; default runs/NAME.")]
Baseline = Annotated[str | None, Option(help="The arm to compare with; default the analysis's, else the first.")]

app = typer.Typer(name="study", help="Studies: arms x models x tasks x seeds, resumable.", no_args_is_help=True)
swebench = typer.Typer(name="swebench", help="SWE-bench: predictions and evaluation.", no_args_is_help=True)


def options_of(pairs: list[str] | None, model: str | None = None, *, option: str = "--set") -> dict[str, Any]:
    """`NAME=VALUE` pairs; a value that is JSON (a number, true, a list) is read as such, anything else is text."""
    options: dict[str, Any] = {} if model is None else {"model": model}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise Misuse(f"{option} takes NAME=VALUE, not {pair!r}")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def place_of(experiment: str) -> Path:
    """The file or folder of an experiment, which may not be there."""
    named = Path("experiments") / experiment
    return named if not Path(experiment).exists() and named.exists() else Path(experiment)


def load(experiment: str, **options: Any) -> Study:
    """The study of a file, a folder with a `study.py`, or a name in `experiments/`.

    Raises `Misuse` for a value of `options` that its code refuses.
    """
    from rlm_loop.study import StudyError, load_study_file

    where = place_of(experiment)
    if not where.exists():
        there = sorted(p.parent.name for p in Path("experiments").glob("*/study.py"))
        known = ", ".join(there) or "nothing here: they are in the repository; `rlm-loop study init` writes one"
        raise StudyError(f"there is no experiment {experiment}; experiments/ has {known}")
    try:
        return load_study_file(where, **options)
    except (TypeError, ValueError) as error:
        if not options:
            raise
        raise Misuse(f"{experiment}: {error} (given: {', '.join(f'{o}={v!r}' for o, v in options.items())})") from error


def run_study(study: Study, folder: str, *, show: bool = True, **options: Any) -> int:
    """Run what is left of a study with progress on standard error, then show its tables (unless `show` is off).

    `options` are those of `Study.run`.
    """
    from rlm_loop.study import StudyError, StudyInterrupted, StudyWarning, Unfair

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", StudyWarning)
            results = study.run(folder, progress=True, **options)
    except StudyInterrupted as stopped:
        note(str(stopped))
        return INTERRUPTED
    except Unfair as unfair:
        note(unfair.diff)
        raise
    if show:
        if not results.complete_pairs:
            crash = f"; the first crash: {results.crashed[0]['error']}" if results.crashed else ""
            raise StudyError(f"no task was tried by every arm{crash or ' yet; run the same command again to go on'}")
        show_results(results)
        note(f"results: {folder}/results.jsonl\ntraces:  {folder}/traces")
        note(f"one run: rlm-loop trace show {folder}/{results.rows[0]['trace']}")
    return 0


def show_results(results: Results, baseline: str | None = None) -> None:
    """The tables of arms and suites, and the figure."""
    from rlm_loop.report import arm_table, resolve_against_tokens, save, suite_table

    for table in (arm_table(results, baseline), suite_table(results, baseline)):
        show_table(table)
        echo()
    note(f"plot:    {save(resolve_against_tokens(results), Path(results.folder) / 'figure')[0]}")


@app.command("run")
def run(
    context: typer.Context,
    experiment: Experiment,
    out: Out = None,
    models: Annotated[
        str | None, Option("--model", "--models", metavar="NAME,NAME", help="One, or several in turn into one folder.")
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="Tasks at most, of the suites in turn.")] = None,
    seconds: Annotated[float | None, Option(min=0, help="Start no further task after this.")] = None,
    jobs: Annotated[int | None, Option(min=1, help="Episodes at a time, in threads; default 1.")] = None,
    chosen: SetOptions = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Run failed episodes again.")] = False,
    max_cost: Annotated[float | None, Option(min=0, help="US dollars for it all, earlier runs included.")] = None,
    max_tokens: Annotated[
        int | None, Option(min=0, help="Tokens in and out for it all, earlier runs included.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show arms, tasks, first requests, an estimate.")] = False,
    mixed: Annotated[
        bool, Option("--mixed", help="Go on with rows of other code of this package; noted in study.json.")
    ] = False,
) -> int:
    """Run an experiment, or go on with it; Ctrl-C keeps what is finished."""
    from rlm_loop.study.run.estimate import estimates

    names = [None] if models is None else list(dict.fromkeys(filter(None, map(str.strip, models.split(",")))))
    for name in filter(None, names):
        context.obj(name)  # a wrong name is said now, before anything is made
    studies = [load(experiment, **options_of(chosen, name)) for name in names]
    folder = out or f"runs/{studies[0].name}"
    if dry_run:
        _say_plan(studies[0], limit)
    if dry_run or len(studies) > 1:
        for estimate in (each for study in studies for each in estimates(study, folder, limit)):
            echo(fitting(estimate))
    if dry_run:
        return 0
    options: dict[str, Any] = {"limit": limit, "seconds": seconds, "jobs": jobs}
    options |= {"retry_failed": retry_failed, "max_cost": max_cost, "max_tokens": max_tokens, "mixed": mixed}
    for study in studies:  # each extends the folder by its model; what Ctrl-C or a limit ends is gone on with
        if code := run_study(study, folder, show=study is studies[-1], **options):
            return code
    return 0


def _say_plan(study: Study, limit: int | None) -> None:
    """Print the arms, the tasks of each suite, and the first request of each arm on the first task."""
    from rlm_loop.report.notebook.formatting import clipped

    episodes, agents = study.episodes(limit), next(iter(study.agents().values()))
    tasks = Counter(suite for suite, _ in dict.fromkeys((e.suite, e.task.id) for e in episodes))
    echo(fitting(f"{study.name}: {len(agents)} arms, {len(set(study.seeds))} seeds, {len(episodes)} episodes"))
    echo(fitting("tasks: " + ", ".join(f"{count} of {suite}" for suite, count in tasks.items())))
    for arm, agent in agents.items():
        make: Any = getattr(agent, "first_request", None)
        echo(f"\n--- {arm}, on {episodes[0].task.id}")
        if make is None:
            echo("(an arm of another project: its requests are its own)")
            continue
        prompt = make(episodes[0].task).prompt
        for tool in prompt.tools:
            echo(f"[tool] {as_json(tool)}")
        for message in prompt.messages:
            echo(f"[{message.role}]\n{clipped(message.text)}")
    echo()


@app.command()
def submit(
    experiment: Experiment,
    array: Annotated[int, Option(min=1, metavar="N", help="Jobs: each runs every N-th episode.")],
    minutes: Annotated[int, Option(min=1, help="Of each job at most.")],
    out: Out = None,
    model: ModelOption = None,
    chosen: SetOptions = None,
    cluster: Annotated[str | None, Option(help="slurm, or local (processes here); default: what there is.")] = None,
    slurm: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="An option of sbatch, such as partition=gpu or mem=8G.")
    ] = None,
) -> None:
    """Send an experiment to Slurm as an array of jobs; the same command again sends what is left.

    The results go to a disk that all nodes share.
    """
    from rlm_loop.study import submit as send

    make = partial(load, str(place_of(experiment).absolute()), **options_of(chosen, model))
    given = {f"slurm_{name}": value for name, value in options_of(slurm, option="--slurm").items()}
    folder = out or f"runs/{make().name}"
    sent = send(make, folder, array=array, minutes=minutes, cluster=cluster, **given)
    if not sent:
        note(f"nothing is left to run in {folder}")
        return
    echo(f"{len(sent)} jobs sent, the first is {sent[0].job_id}; rows go to {folder}/results, logs to {folder}/jobs")
    note(f"how far it is:  rlm-loop study status {folder}")


@app.command()
def status(folder: Folder) -> None:
    """Show the state of a study, which may be running in another terminal."""
    from rlm_loop.study import status as status_of

    for line in status_of(folder).lines():
        echo(fitting(line))


@app.command("rescore")
def rescore_(
    folder: Folder,
    corrected: Annotated[
        str | None, Option("--with", metavar="FILE|NAME", help="The experiment with a corrected truth or scorer.")
    ] = None,
) -> None:
    """Score recorded runs again, by each contract: what was left behind, and the text of the answer.

    No model is called.  Tasks that ask for a value have one contract, the answer.  With a corrected experiment the new
    scores are kept, and the old ones beside them.
    """
    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import rescore

    if corrected is not None:
        rows = [row for row in load(corrected).rescore(folder).rows if row.get("scored_before")]
        flipped = sum(row["resolved"] != row["scored_before"][-1]["resolved"] for row in rows)
        note(f"{len(rows)} rows have a corrected score, {flipped} of them another result")
        return
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rescore(folder):
        resolved = {"recorded": row["recorded"], **row["by_submission"]}
        ours = {"n": 1, **{name: value is True for name, value in resolved.items()}}
        counts.setdefault((row["suite"], row["arm"]), Counter()).update(ours)
    columns = ("n", "recorded", "artifact", "answer")
    cells = [[*key, *(str(counts[key][c]) if c in counts[key] else "" for c in columns)] for key in sorted(counts)]
    show_table(Table("Resolved, by contract", ["suite", "arm", *columns], cells, labels=2))


@app.command()
def check(
    experiment: Annotated[
        str, Argument(metavar="FILE|NAME|FOLDER", help="An experiment, or the folder of a study's results.")
    ],
    model: ModelOption = None,
    chosen: SetOptions = None,
) -> int:
    """In what the arms of a study differ, by their first requests, and what it can show; no model is called.

    Exit code: 0 as declared (or nothing was declared), 1 not so.
    """
    from rlm_loop.study import StudyError, fairness_check
    from rlm_loop.study.store.reading import FAIRNESS, read_fairness_check

    checked, power = read_fairness_check(experiment) if (Path(experiment) / FAIRNESS).is_file() else None, ""
    if checked is None:
        study = load(experiment, **options_of(chosen, model))
        checked = fairness_check(study)
        try:
            power = f"\n{study.power()}"
        except StudyError as error:  # scipy is not installed
            power = str(error)
    echo(fitting(checked))
    if power:
        echo(power)
    return 0 if checked.fair else 1


@app.command()
def report(
    folder: Folder,
    baseline: Baseline = None,
    html: Annotated[str | None, Option(metavar="OUT.html", help="Write a page, and OUT_traces/ beside it.")] = None,
    no_traces: Annotated[bool, Option("--no-traces", help="With --html: no pages of the traces.")] = False,
) -> None:
    """The tables of a study and its figure; or, with --html, a page with all that is known of it."""
    from tqdm import tqdm

    from rlm_loop.report.study.page import write_study_page
    from rlm_loop.study import load_study

    if html is None:
        show_results(load_study(folder), baseline)
        return
    progress: Any = partial(tqdm, desc="traces", unit="", disable=None, leave=False)
    echo(write_study_page(folder, html, baseline=baseline, traces=not no_traces, progress=progress))


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
def init(file: Annotated[str, Argument(help="The file to write, or a folder for a study.py.")] = "study.py") -> None:
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
    echo(path)
    note(f"run it:  rlm-loop study run {path}")


def compare(
    files: Annotated[
        list[str],
        Argument(
            metavar="[NAME=]PATH...",
            help="CSV or JSON Lines with task, arm and resolved; Inspect .eval; lm-evaluation-harness samples_*.jsonl; "
            "a Harbor job; a study's folder; or a folder of such logs.",
        ),
    ],
    baseline: Annotated[str | None, Option(help="The arm to compare with; default the first.")] = None,
    arm: Annotated[list[str] | None, Option("--arm", help="Only these arms; may be repeated.")] = None,
    score: Annotated[str | None, Option(metavar="NAME", help="Which of several says what is resolved.")] = None,
    threshold: Annotated[float | None, Option(help="The score from which a task counts as resolved.")] = None,
    column: Annotated[list[str] | None, Option(metavar="OURS=THEIRS", help="A table's column: task=my_id.")] = None,
    html: Annotated[str | None, Option(metavar="OUT.html", help="Write a page.")] = None,
    markdown: Markdown = False,
) -> None:
    """Two or more results, paired by task and seed: the difference with its interval.

    Nothing is asked of where they come from: `rlm-loop compare a.csv b.csv`, or one table with a column `arm`.
    """
    from rlm_loop.formats import load_results
    from rlm_loop.report.study.page import compare_page
    from rlm_loop.report.tables.comparison import effect_table, flip_table, suite_effects
    from rlm_loop.study.compare.comparison import compare as compare_results

    columns = {ours: str(theirs) for ours, theirs in options_of(column, option="--column").items()}
    results = load_results(*files, score=score, threshold=threshold, columns=columns)
    results = results.only(*arm) if arm else results
    compared = compare_results(results, baseline)
    for line in results.notes:
        note(f"note: {line}")
    if html is not None:
        write_page(Path(html), compare_page(compared, results.notes))
        return
    for line in compared.sentences():
        echo(fitting(line))
    for table in filter(None, (effect_table(compared), suite_effects(compared), flip_table(compared))):
        echo()
        show_table(table, markdown=markdown)


Arm = Annotated[str, Option("--arm", help="The arm of the study, where it has several.")]
OneModel = Annotated[str, Option("--model", help="The model of the study, where it has several.")]
Seed = Annotated[int | None, Option("--seed", help="The seed of the study, where it has several.")]


@swebench.command()
def predictions(
    folder: Folder,
    out: Annotated[str, Option(help="The file to write, in the official JSONL.")] = "predictions.jsonl",
    arm: Arm = "",
    model: OneModel = "",
    seed: Seed = None,
) -> int:
    """Write the patches of a study's arm in the form that the official harness reads."""
    from rlm_loop.study.compare.patches import study_predictions

    made = study_predictions(folder, arm, model=model, seed=seed)
    empty = sum(not p.model_patch.strip() for p in made.rows)
    echo(f"{len(made.rows)} predictions, {empty} of them empty: {made.write(out)}")
    for task, why in made.left_out.items():
        note(f"left out {task}: {why}")
    return 0 if made.rows else 1


@swebench.command()
def evaluate(
    predictions_file: Annotated[str, Argument(metavar="PREDICTIONS", help="Official JSONL (or JSON).")],
    dataset: Annotated[str, Option(metavar="NAME|FILE", help="lite, verified, full, multilingual, hf://..., a file.")],
    split: Annotated[str, Option(help="The split of a set of the hub.")] = "test",
    run_id: Annotated[str, Option(help="Names the logs and the report.")] = "rlm-loop",
    workers: Annotated[int, Option(min=1, help="Containers at a time.")] = 4,
    timeout: Annotated[int, Option(min=1, help="Seconds for one instance.")] = 1800,
    study: Annotated[str | None, Option("--study", help="A study's folder: show its table with the verdicts.")] = None,
    arm: Arm = "",
    model: OneModel = "",
    seed: Seed = None,
) -> None:
    """Judge predictions by the official harness, in containers; logs and the report go to the working folder."""
    from rlm_loop.report import arm_table
    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import load_study
    from rlm_loop.study.compare.patches import with_report
    from rlm_loop.tasks.swebench import evaluate_predictions

    judged = evaluate_predictions(
        predictions_file, dataset, split=split, run_id=run_id, workers=workers, timeout=timeout
    )
    rows = [[v.instance_id, v.status, v.reason[:80]] for v in judged.verdicts]
    rate = "" if judged.rate is None else f" ({judged.rate:.0%} of the submitted are resolved)"
    notes = [f"{judged}{rate}", *([f"report: {judged.path}"] if judged.path else [])]
    show_table(Table("SWE-bench evaluation", ["instance", "status", "reason"], rows, notes, labels=3))
    if study is not None:
        echo()
        show_table(arm_table(with_report(load_study(study), judged, arm, model=model, seed=seed)))


DEMO_MODEL = "qwen2.5-coder-1.5b"


def demo(out: Annotated[str, Option(help="Where results go.")] = "runs/demo") -> int:
    """Compare three loops on a few tasks with the local model; a second call goes on where the first stopped.

    Fetches the model once; run it in the repository, for example with `make demo`.
    """
    from rlm_loop.models import weights
    from rlm_loop.study.run.estimate import estimates

    study = load("experiments/lean_vs_react/demo.py")
    if left := sum(each.episodes for each in estimates(study, out)):
        known = weights.find(DEMO_MODEL)
        if known is None or not weights.is_here(known):
            fetch(DEMO_MODEL)
        note(f"{left} episodes to go, about 30 s each on two cores; Ctrl-C keeps what is done.")
    return run_study(study, out)
