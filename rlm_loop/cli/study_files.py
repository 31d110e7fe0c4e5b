"""`rlm-loop study init` and `list`: a study file to begin with, and the studies that are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from rlm_loop.cli.experiments import show_table
from rlm_loop.cli.setup import Misuse, echo_json
from rlm_loop.cli.terminal import echo, note

_FEW = 2  # arms that a line names
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


def list_(
    folder: Annotated[str, Argument(help="Where to look, all folders below it included.")] = ".",
    json_: Annotated[bool, Option("--json", help="One JSON object a study, one a line.")] = False,
) -> None:
    """The studies below a folder: their arms, how many episodes are done of those planned, and when they ran last."""
    from rlm_loop.report.tables.table import Table

    where = Path(folder)
    if not where.is_dir():
        raise Misuse(f"{folder} is no folder: name one that has studies below it, such as runs")
    found = [_about(path) for path in studies_below(where)]
    if json_:
        echo_json(found)
        return
    if not found:
        note(f"no studies below {folder}; `rlm-loop study init` writes one to begin with")
        return
    rows = [[os.path.relpath(e["folder"], where), *_shown(e)] for e in found]
    show_table(Table(f"Studies below {folder}", ["folder", "study", "arms", "done", "when"], rows, labels=5))
    for each in found:
        if "fault" in each:
            note(f"{each['folder']} {each['fault']}")


def studies_below(folder: Path) -> Iterator[Path]:
    """Folders of studies, in order; hidden ones are not entered, nor is what lies in a study's own."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "node_modules")
        if "study.json" in files:
            folders.clear()
            yield here


def _about(folder: Path) -> dict[str, Any]:
    from rlm_loop.study import StudyError, load_study, status

    try:
        said, found = status(folder), load_study(folder)
    except StudyError as error:
        return {"folder": str(folder), "fault": f"cannot be read: {error}"}
    sessions = found.lock.get("sessions") or [{}]
    return {
        "folder": str(folder),
        "name": said.name,
        "arms": list(dict.fromkeys([*found.arms, *(a.arm for a in said.arms)])),
        "done": said.done,
        "failed": said.failed,
        "planned": said.planned,
        "running": said.running,
        "when": str(sessions[-1].get("started", "")),
    }


def _shown(about: dict[str, Any]) -> list[str]:
    if "fault" in about:
        return ["?", "", "cannot be read", ""]
    arms, failed = about["arms"], f", {about['failed']} failed" if about["failed"] else ""
    first = ", ".join(arms[:_FEW]) + (f" and {len(arms) - _FEW} more" if len(arms) > _FEW else "")
    done = f"{about['done']}/{about['planned']}{failed}{', running' if about['running'] else ''}"
    return [about["name"], first, done, about["when"][:10]]
