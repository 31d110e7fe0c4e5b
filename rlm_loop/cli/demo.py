"""`rlm-loop demo`: real loops on a real model, small enough to wait for; without weights, the recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from rlm_loop.cli.models import fetch
from rlm_loop.cli.setup import Misuse, explain
from rlm_loop.cli.study import load, run_study, show_table
from rlm_loop.cli.terminal import echo, note, results

if TYPE_CHECKING:
    from rlm_loop.study import Results, Study

MODEL = "qwen2.5-coder-1.5b"
EXPERIMENT = "experiments/lean_vs_react"


def demo(
    out: Annotated[str, Option(help="Where results go.")] = "runs/demo",
    experiment: Annotated[str, Option(help="The folder of the experiment.")] = EXPERIMENT,
    recorded: Annotated[bool, Option("--recorded", help="Only show the recorded run.")] = False,
) -> int:
    """Compare three loops on a few tasks with the local model; a second call goes on where the first stopped.

    Fetches the model once. Where no weights can be had it says so and shows the run that is recorded in the
    experiment's folder.
    """
    folder = Path(experiment)
    if not folder.is_dir():
        raise Misuse(f"there is no folder {experiment} here; run this in the repository, for example with `make demo`")
    if recorded:
        return show_recorded(folder)
    study = load(str(folder / "demo.py"))
    if to_go := left(study, out):
        unavailable = _fetched()
        if unavailable is not None:
            note(f"NOTICE: no model, so nothing was run now. {unavailable}")
            note("NOTICE: what follows is the recorded run, read back from its results and traces.")
            return show_recorded(folder)
        note(f"{to_go} episodes to go, about 30 s each on two cores; Ctrl-C keeps what is done.")
    return run_study(study, out)


def left(study: Study, folder: str) -> int:
    """How many episodes are not finished yet."""
    from rlm_loop.study import StudyError, load_study

    try:
        done = load_study(folder).rows
    except StudyError:  # nothing there yet; a real problem is met again when the study runs
        done = []
    finished = {(r["arm"], r["model"], r["suite"], r["task"], r["seed"]) for r in done if r.get("error") is None}
    return sum(e.key not in finished for e in study.episodes())


def _fetched() -> str | None:
    """Make sure that the weights are here; where they cannot be had, why.  A full disk is the user's to solve."""
    from rlm_loop.models import weights
    from rlm_loop.models.base import DiskFull, ModelError, ModelNotFound

    try:
        weights.path(MODEL)
    except ModelNotFound:
        pass
    else:
        return None
    try:
        fetch(MODEL)
    except DiskFull:
        raise
    except ModelError as error:
        return explain(error)
    return None


def show_recorded(folder: Path) -> int:
    """The committed run: checked against its traces, its table, and the steps of one episode."""
    from rlm_loop.study import load_study, verify_traces

    where = next((p.parent for p in sorted(folder.rglob("study.json"))), None)
    if where is None:
        raise Misuse(f"{folder} holds no recorded run either; a model is needed: rlm-loop models pull {MODEL}")
    found = load_study(where)
    wrong = verify_traces(where)
    if wrong:
        raise Misuse(
            f"the recorded run does not agree with its traces ({wrong[0]}); restore {where} from the repository"
        )
    note(f"RECORDED RUN: {len(found)} episodes in {where}, each agrees with its trace")
    _one_episode(found)
    from rlm_loop.report import arm_table

    show_table(arm_table(found))
    for picture in sorted(folder.rglob("*.png")):
        note(f"plot:    {picture}")
    note(f"results and traces: {where}")
    return 0


def _one_episode(found: Results) -> None:
    """The shortest resolved episode of more than one turn, replayed from its trace."""
    from rlm_loop.agents.past_run import outcome_of
    from rlm_loop.cli.steps import step_panel
    from rlm_loop.report.notebook.formatting import closing_line

    rows = sorted((r for r in found.rows if r["resolved"] and r["steps"] > 1), key=lambda r: r["steps"])
    if not rows:
        return
    outcome = outcome_of(found.trace(rows[0]))
    console = results()
    echo(f"one episode (recorded): {rows[0]['arm']} on {rows[0]['suite']}/{rows[0]['task']}")
    echo(outcome.question)
    for turn in outcome.turns:
        console.print(step_panel(turn))
    echo(closing_line(outcome))
