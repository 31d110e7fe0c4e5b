"""`rlm-loop study init`: a study file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from rlm_loop.cli.setup import Misuse
from rlm_loop.cli.terminal import echo, note

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
