"""Repair tasks in small repositories: a package of eight functions in four modules, one of which has a slip.

The functions are published HumanEval solutions, the slips those of the suite `humaneval-repair`.  A task is resolved
where the hidden tests of the broken function pass after the git diff was applied to a fresh copy.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial

from rlm_loop import Suite, Task
from rlm_loop.outcome import Score
from rlm_loop.tasks import Attempt
from rlm_loop.tasks.base import Split
from rlm_loop.tasks.humaneval import LICENCE, HumanEvalProblem, by_its_tests, read_problems
from rlm_loop.tasks.humaneval_repair import recorded
from rlm_loop.tasks.mutation import apply
from rlm_loop.tools.function import Tool, ToolError, as_tool
from rlm_loop.workspace import Workspace, WorkspaceError

PACKAGE = "toolbox"
MODULES = ("counting", "listing", "parsing", "rules")
_FUNCTIONS = 8
#: Lines of a body and characters of a source: with longer functions no loop resolved any of the first 24 dev runs.
_LONGEST = (8, 620)


class Checkout(Workspace):
    """A workspace with two tools that edit: by lines, and by the name of a function.  An arm is allowed one of them."""

    def tools(self) -> tuple[Tool, ...]:
        return (*super().tools(), as_tool(self.edit_function))

    def edit_function(self, path: str, name: str, source: str) -> str:
        """Replace the function of this name in a file by new source."""
        known = [str(found.relative_to(self.root)) for found in sorted(self.root.rglob("*.py"))]
        if path not in known:
            raise ToolError("invalid_arguments", f"no file {path!r}; there is {', '.join(known)}")
        text = (self.root / path).read_text(encoding="utf-8")
        node = next((n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name), None)
        if node is None:
            raise ToolError("invalid_arguments", f"{path} has no function {name!r}")
        lines = text.splitlines(keepends=True)
        new = "".join([*lines[: node.lineno - 1], source.strip("\n"), "\n", *lines[node.end_lineno :]])
        try:
            ast.parse(new)
        except SyntaxError as error:
            raise ToolError("runtime", f"not changed, it would not compile: line {error.lineno}: {error.msg}") from None
        (self.root / path).write_text(new, encoding="utf-8")
        return f"{name} in {path} was replaced"


def repositories(split: Split) -> Suite:
    """Return a task for each recorded slip in a short function of a split of HumanEval, in the order of the problems.

    A repository has the broken function and the seven next ones of the split, so neighbours share functions.
    """
    bugs = recorded()
    odd = split == "test"
    problems = [
        p for p in read_problems() if p.task_id in bugs and int(p.task_id.rpartition("/")[2]) % 2 == odd and _short(p)
    ]
    tasks: list[Task] = []
    for number, problem in enumerate(problems):
        around = [problems[(number + step) % len(problems)] for step in range(_FUNCTIONS)]
        sources = {p.entry_point: p.solution for p in around}
        sources[problem.entry_point] = apply(problem.solution, bugs[problem.task_id])
        tasks.append(_task(problem, _files(sources, number)))
    return Suite(f"repositories/{split}", tuple(tasks), "mend one slip in a small package", LICENCE)


def _short(problem: HumanEvalProblem) -> bool:
    function = ast.parse(problem.solution).body[-1]
    assert isinstance(function, ast.FunctionDef)
    first = function.body[ast.get_docstring(function) is not None]
    return (function.body[-1].end_lineno or 0) - first.lineno < _LONGEST[0] and len(problem.solution) <= _LONGEST[1]


def _files(sources: Mapping[str, str], turn: int) -> dict[str, str]:
    """Return a package with two functions a module; which module has which depends on `turn`."""
    names = sorted(sources)
    names = names[turn % len(names) :] + names[: turn % len(names)]
    files = {"README.md": f"# {PACKAGE}\n\nSmall functions; each says in its docstring what it does.\n"}
    exports: list[str] = []
    for place, module in enumerate(MODULES):
        own = names[place * 2 : place * 2 + 2]
        files[f"{PACKAGE}/{module}.py"] = _module([sources[name] for name in own])
        exports.append(f"from {PACKAGE}.{module} import {', '.join(own)}\n")
    return {**files, f"{PACKAGE}/__init__.py": "".join(exports)}


def _module(sources: Sequence[str]) -> str:
    """Join sources to a module, imports first and once."""
    imports: dict[str, None] = {}
    bodies: list[str] = []
    for source in sources:
        lines = source.strip("\n").splitlines()
        top = [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        taken = {line for node in top for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        offset = source[: len(source) - len(source.lstrip("\n"))].count("\n")
        imports |= dict.fromkeys(ast.unparse(node) for node in top)
        kept = [line for number, line in enumerate(lines, 1 + offset) if number not in taken]
        bodies.append("\n".join(kept).strip("\n"))
    head = "\n".join(imports)
    return (f"{head}\n\n\n" if head else "") + "\n\n\n".join(bodies) + "\n"


def _quoted(name: str, files: Mapping[str, str]) -> str:
    """Return where a function stands, and its numbered lines up to the body, as `read_file` shows them.

    The body is left out: a small model that is shown a slip copies it.
    """
    for path, text in files.items():
        for node in ast.parse(text).body if path.endswith(".py") else ():
            if isinstance(node, ast.FunctionDef) and node.name == name:
                body = node.body[ast.get_docstring(node) is not None].lineno
                lines = text.splitlines()[node.lineno - 1 : body - 1]
                quoted = "\n".join(f"{n}: {line}" for n, line in enumerate(lines, node.lineno))
                return f"In {path}:\n{quoted}\nIts body is lines {body} to {node.end_lineno}."
    raise ValueError(f"no file defines {name}")


def _task(problem: HumanEvalProblem, files: Mapping[str, str]) -> Task:
    return Task(
        id=problem.task_id.replace("HumanEval", "Repository"),
        question=f"`{problem.entry_point}` does not do what its docstring says. {_quoted(problem.entry_point, files)}\n"
        "Write the function anew in the file, so that it does.",
        score=partial(score, files, problem),
        expected=problem.solution,
        workspace=partial(Checkout, files),
        needs_repl=False,
    )


def score(files: Mapping[str, str], problem: HumanEvalProblem, attempt: Attempt) -> Score:
    """Apply the patch to a fresh copy, and run the hidden tests on the module that defines the function."""
    if not isinstance(attempt.artifact, str) or not attempt.artifact.strip():
        return Score(False, 0.0, "nothing was changed")
    with Workspace(files) as space:
        try:
            space.apply(attempt.artifact)
        except WorkspaceError as error:
            return Score(False, 0.0, f"the patch does not apply: {error}"[:300])
        for path in sorted(space.root.glob(f"{PACKAGE}/*.py")):
            source = path.read_text(encoding="utf-8", errors="replace")
            if path.name != "__init__.py" and f"def {problem.entry_point}(" in source:
                return by_its_tests(problem, [("", source)], 10.0, attempt.isolation, by="patch")
    return Score(False, 0.0, f"no module defines {problem.entry_point}")
