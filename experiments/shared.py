"""What the experiments share: texts, tasks and model of a study, lists given as text, the command of a `finding.py`.

A `study.py` is started by its path, from anywhere, so it adds the repository's folder to the search path and imports
`experiments.shared` then.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.tables_suite.suite import tables
from rlm_loop import LeanAgent, ReActAgent, Suite, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.models import LocalModel, get_model
from rlm_loop.study import Analysis, Contrast, Results, StudyError, load_study
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.tasks import Split, get_suite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Texts chosen from eight candidates for each loop, by equal effort on dev splits (see README.md, `tuning`).
CODE = (
    "Solve the task by writing Python in a ```python block. It runs in a persistent REPL and you get its "
    "stdout. First print the result and check it. Then set the variable final_answer in another code "
    "block."
)
LEAN = (
    "Reply with one tool call and nothing else. Compute with python and print the result; do not guess. "
    'For example, "How many primes are below 50?" is solved in two replies:\n'
    '{"name": "python", "arguments": {"code": "print(sum(all(n % d for d in range(2, n)) for n in '
    'range(2, 50)))"}}\n'
    "and, once 15 was printed,\n"
    '{"name": "final_answer", "arguments": {"answer": 15}}'
)
REACT = (
    "Answer the question with the tools below. For example, the question\n"
    "How many primes are below 50?\n"
    "is answered in two replies. The first:\n"
    "Thought: I test each number below 50 by division.\n"
    "Action: python\n"
    'Action Input: {"code": "print(sum(all(n % d for d in range(2, n)) for n in range(2, 50)))"}\n'
    "Then comes the line\n"
    "Observation: 15\n"
    "and the second reply is:\n"
    "Thought: 15 was printed, which answers the question.\n"
    "Action: finish\n"
    'Action Input: {"answer": 15}'
)
#: The classic template, without a solved question.
REACT_PLAIN = (
    "Answer the question as well as you can, using the tools below. Use exactly this format:\n"
    "Thought: what to do next and why\n"
    "Action: the tool to use\n"
    "Action Input: its arguments as a JSON object\n"
    "Observation: the result (given to you)\n"
    "(Thought, Action, Action Input and Observation repeat as often as needed)\n"
    "When you know the answer, use the action finish:\n"
    "Thought: I know the answer\n"
    "Action: finish\n"
    'Action Input: {"answer": the answer}'
)

#: A function that makes each loop with its text.
LOOPS: Mapping[str, Callable[..., Agent]] = {
    "code": partial(ToolLoopAgent, system=CODE, max_depth=0),
    "lean": partial(LeanAgent, system=LEAN, presentation="text"),
    "react": partial(ReActAgent, system=REACT),
}


#: Tokens of the window that an Ollama server is told to have: fixed, so that it never loads the model anew.
WINDOW = 32_768


def with_window(model: Any, local: int, **options: Any) -> Any:
    """Return the model of a name: a local one with `local` tokens of window and `options`, one of Ollama with `WINDOW`.

    A model object stays as it is.
    """
    if not isinstance(model, str):
        return model
    if model.startswith("ollama"):
        return get_model(model, context_size=WINDOW)
    made = get_model(model)
    return LocalModel(model, context_size=local, **options) if isinstance(made, LocalModel) else made


def served(model: Any, slots: int, context_size: int, seed: int, **sampling: Any) -> Any:
    """The model of a study.  With more than one slot, a local one that answers that many episodes side by side.

    Use as many `--jobs` as slots.  A batch may change a text, and with one slot so may what of a prompt is cached
    (README.md, `batching`).
    """
    if slots == 1:
        return model
    return LocalModel(model, slots=slots, context_size=context_size, seed=seed, **sampling)


def suite_named(name: str, split: Split, **options: Any) -> Suite:
    """A split of a suite of the package, or of `tables`, which some studies were recorded with."""
    return tables(**options).split(split) if name == "tables" else get_suite(f"{name}/{split}", **options)


def first_tasks(names: Mapping[str, int], split: Split, most: int | None = None) -> list[Suite]:
    """The first tasks of this split of each suite, as many as `names` says and at most `most`."""
    counts = {name: number if most is None else min(most, number) for name, number in names.items()}
    found = {name: suite_named(name, split) for name in counts}
    return [replace(suite, tasks=suite.tasks[: counts[name]]) for name, suite in found.items()]


def spread_tasks(names: Mapping[str, int], split: Split) -> list[Suite]:
    """Tasks of this split at equal distances through each suite, as many as `names` says, or all where it has fewer."""
    found = {name: suite_named(name, split) for name in names}
    return [replace(suite, tasks=spread(suite.tasks, min(names[name], len(suite)))) for name, suite in found.items()]


def spread(tasks: Sequence[Any], count: int) -> tuple[Any, ...]:
    """`count` of the tasks, at equal distances."""
    return tuple(tasks[int((i + 0.5) * len(tasks) / count)] for i in range(count))


def chosen(arms: Mapping[str, Agent], wanted: Sequence[str]) -> dict[str, Agent]:
    """The arms that are wanted, all of them for none.  Raises `StudyError` for an unknown name."""
    if unknown := [name for name in wanted if name not in arms]:
        raise StudyError(f"there is no arm {unknown[0]!r}; there are {', '.join(arms)}")
    return {name: arms[name] for name in wanted or arms}


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """A list, also where it was written as text with commas."""
    return tuple(filter(None, given.split(","))) if isinstance(given, str) else tuple(given)


def numbers(given: str | int | Sequence[int]) -> tuple[int, ...]:
    """A list of numbers, also where it was written as text with commas."""
    if isinstance(given, int):
        return (given,)
    return tuple(map(int, given.split(","))) if isinstance(given, str) else tuple(given)


def verdicts(results: Results) -> dict[tuple[str, str, int], bool]:
    """By arm, task (with its suite) and seed: whether it was resolved, where that is known."""
    known = ((row, is_resolved(row)) for row in results.rows)
    return {episode_of(row): verdict for row, verdict in known if verdict is not None}


def episode_of(row: Mapping[str, Any]) -> tuple[str, str, int]:
    """What names an episode of a study with one model: its arm, its task (with the suite) and its seed."""
    return row["arm"], f"{row['suite']}/{row['task']}", row["seed"]


#: Below this p of the test of interaction an arm's effect varies by suite and is not pooled.
POOLED_FROM = 0.10


def arms_against(results: Results, baseline: str) -> str:
    """Return a table of the arms as Markdown: tasks resolved, prompt tokens, and paired differences from a baseline.

    Intervals are 95 % ones, not adjusted.  Differences in tasks of an arm whose effect varies by suite are left out.
    """
    from rlm_loop.report import Table

    compared = results.compare(analysis=Analysis(baseline=baseline, family=(), missing="worst"))
    effects = {(one.arm, one.measure): one for one in compared.contrasts}
    varies = {test.arm for test in compared.interactions if test.p < POOLED_FROM}
    rows: list[list[str]] = []
    for arm in results.arms:
        own = [row for row in results.complete_pairs if row["arm"] == arm]
        resolved = sum(bool(is_resolved(row)) for row in own)
        tokens = sum(row["input_tokens"] for row in own) / len(own)
        points, times = "baseline", ""
        if arm != baseline:
            points, times = in_points(effects[arm, "resolved"]), in_times(effects[arm, "input_tokens"])
        if arm in varies:
            points = "varies by suite"
        rows.append([arm, f"{resolved} of {len(own)}", points, f"{tokens:,.0f}", times])
    columns = ["arm", "resolved", f"points more than {baseline} (95 %)", "prompt tokens", "times its tokens (95 %)"]
    notes = ["Means of prompt tokens; geometric means of the pairs' ratios; intervals are not adjusted."]
    return Table("Tasks and prompt tokens", columns, rows, notes).to_markdown().strip()


def in_points(effect: Contrast) -> str:
    """Return a difference of two resolve rates with its interval, in points."""
    if effect.estimate is None or effect.low is None or effect.high is None:
        return "not known"
    return f"{100 * effect.estimate:+.0f} ({100 * effect.low:.0f} to {100 * effect.high:.0f})"


def in_times(effect: Contrast) -> str:
    """Return a ratio with its interval, which few tasks do not have."""
    if effect.estimate is None:
        return "not known"
    if effect.low is None or effect.high is None:
        return f"{effect.estimate:.2f} (no interval)"
    return f"{effect.estimate:.2f} ({effect.low:.2f} to {effect.high:.2f})"


def write_finding(
    here: Path, finding: Callable[[Results], str], figure: Callable[[Results], Figure] | None = None
) -> None:
    """Write a finding into the README, between its marks, and `figures/finding.png` where a figure is given."""
    from rlm_loop.report import write_between
    from rlm_loop.report.figures import save

    parser = argparse.ArgumentParser(description="Write the finding of a study from its results.")
    parser.add_argument("--folder", type=Path, default=here / "results", help="a study's results")
    results = load_study(parser.parse_args().folder)
    text = finding(results).strip()
    write_between(here / "README.md", "finding", text)
    if figure is not None:
        save(figure(results), here / "figures" / "finding.png")
    print(text)
