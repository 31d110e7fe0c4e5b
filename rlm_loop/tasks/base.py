"""Tasks: a question, the world it is asked in, and the judge of an answer.

A task knows no agent, model or loop, so every strategy meets exactly the same problem.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt, Submission
from rlm_loop.tasks.match import Match
from rlm_loop.tasks.scorer_mark import mark_of
from rlm_loop.workspace import Workspace

Split = Literal["dev", "test"]


@dataclass(frozen=True)
class Deferred:
    """A context that is made when a run needs it, so that a suite of long texts can be listed without them.

    `make` returns the value, the same in every call.  `identify` says in a line what the value is, by a hash of what
    it is made of: two studies with the same line had the same text.  Equal are those with the same `name`.
    """

    name: str
    make: Callable[[], Any] = field(compare=False, repr=False)
    identify: Callable[[], str] = field(compare=False, repr=False)


@dataclass(frozen=True)
class CheckResult:
    """The verdict on a checkout of a check that a user could run himself: it may be shown to a model, unlike a `Score`.

    `feedback` is why it did not pass, `tests` the result (`passed`, `failed`, `error`, `skipped`) of each test that
    it ran, by name.
    """

    passed: bool
    feedback: str = ""
    tests: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, repr=False)
class Task:
    """A problem.

    `question` is all that a model is told, the same in every strategy.  `context` becomes the REPL variable
    `context`.  `files` (name to text or bytes) lie in the REPL's working folder.  `setup` is Python run in the
    REPL before the first turn; the names it makes are the model's to use.  `workspace` opens a throw-away git
    checkout (its tools are offered too).  `collect` is a Python expression evaluated in the REPL when the run
    is over; its value (JSON) becomes the artifact; a task with a workspace has the git diff as its artifact.
    `inline` is text that a strategy without tools needs to see (file contents), `needs_repl` says whether
    offering Python makes sense.  `score` judges an attempt and never calls a model: a function of an `Attempt` that
    returns a `Score` or whether it is right; without one an answer is right that states `expected` (see `match.Match`),
    and `Task(id, question, 1229)` says the same.  `judge` asks it.  `check` is what can be run on a
    checkout without knowing the truth (the tests that are there to see); nothing but `score` decides what is resolved.

    A long `context` may be a `Deferred`: `material` is the value itself.  `facts` are figures of the task for tables:
    its family, its size, the text that it is made of.
    `submissions` are the contracts that the scorer knows, the same for every strategy: the first decides what is
    resolved, and rows keep all of them.  A task that asks for code has two: the definition that was left behind
    (`artifact`) and the text of the answer (`answer`).
    """

    id: str
    question: str
    score: Any = None  # a function of an Attempt; what is no function is the right answer
    expected: Any = None
    context: Any = None
    files: Mapping[str, str | bytes] = field(default_factory=dict[str, "str | bytes"])
    setup: str = ""
    workspace: Callable[[], Workspace] | None = None
    tools: tuple[Callable[..., Any], ...] = ()
    collect: str = ""
    inline: str = ""
    needs_repl: bool = True
    level: int = 1
    check: Callable[[Workspace], CheckResult] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    submissions: tuple[Submission, ...] = ("answer",)

    def __post_init__(self) -> None:
        for name in ("id", "question"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Task.{name} is a text, not {getattr(self, name)!r:.60}: Task(id, question, answer)")
        object.__setattr__(self, "tools", tuple(self.tools))
        if not callable(self.score):
            answer: Any = self.expected if self.score is None else self.score
            if answer is None:
                why = "give expected=, or score=, a function of an Attempt"
                raise TypeError(f"nothing says when the task {self.id!r} is resolved: {why}")
            object.__setattr__(self, "expected", answer)
            object.__setattr__(self, "score", Match(answer))

    def __repr__(self) -> str:
        return f"Task({self.id!r}, {reprlib.repr(self.question)}, expected={reprlib.repr(self.expected)})"

    def judge(self, attempt: Attempt, submission: Submission | None = None) -> Score:
        """Return the scorer's verdict on an attempt by one of the contracts, by default the first of `submissions`.

        True and False are taken as a score of 1 and of 0.  Raises what the scorer raises, and `TypeError` where it
        returns something else.
        """
        said: Any = self.score(replace(attempt, submission=submission or self.submissions[0]))
        if isinstance(said, Score):
            return said
        if isinstance(said, bool) or type(said).__name__ == "bool":  # numpy's, too
            return Score(bool(said), float(said))
        raise TypeError(
            f"the scorer of {self.id!r} returned {said!r:.60}: return a Score, such as "
            "Score(resolved=True, value=1.0), or True or False"
        )

    @cached_property
    def judged_by(self) -> tuple[str, str]:
        """Hashes of the truth and of the scorer, as they were when first asked for (see `tasks.scorer_mark`)."""
        return mark_of(self.expected), mark_of(self.score)

    def material(self) -> Any:
        """The context as a value; a deferred one is made now."""
        return self.context.make() if isinstance(self.context, Deferred) else self.context


@dataclass(frozen=True, repr=False)
class Suite:
    """A named, ordered set of tasks, with two splits: wordings are chosen on `dev` and reported on `test`."""

    name: str
    tasks: tuple[Task, ...]
    description: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(self.tasks))
        for task in self.tasks:
            if not isinstance(task, Task):
                raise TypeError(f"a suite holds tasks, not {task!r:.60}: Suite(name, [Task(id, question, answer)])")

    def __repr__(self) -> str:
        return f"Suite({self.name!r}, {len(self.tasks)} tasks)"

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def split(self, which: Split) -> Suite:
        """Every second task, in order: `dev` starts with the first, `test` with the second."""
        start = {"dev": 0, "test": 1}[which]
        return Suite(f"{self.name}/{which}", self.tasks[start::2], self.description, self.licence)

    def submitting(self, what: Submission) -> Suite:
        """The same tasks, where `what` decides what is resolved; tasks without this contract stay as they are."""
        tasks = (
            replace(t, submissions=(what, *(s for s in t.submissions if s != what))) if what in t.submissions else t
            for t in self.tasks
        )
        return replace(self, tasks=tuple(tasks))

    def take(self, ids: Sequence[str]) -> Suite:
        """The tasks with these ids, in the suite's order; an unknown id is an error that lists near ones."""
        known = {t.id: t for t in self.tasks}
        missing = [i for i in ids if i not in known]
        if missing:
            raise KeyError(f"suite {self.name!r} has no task {missing}; it has {sorted(known)[:8]} ...")
        return Suite(self.name, tuple(t for t in self.tasks if t.id in set(ids)), self.description, self.licence)


def current_suite(name: str) -> str:
    """The name of a recorded suite: the committed studies call `tables/test` `tables/held`."""
    whole, slash, split = name.rpartition("/")
    renamed = {"development": "dev", "held": "test"}
    return f"{whole}/{renamed[split]}" if slash and split in renamed else name


INLINE_CAP = 6000  # characters of file text, about 2,500 tokens of a table


def inline_text(files: Mapping[str, str]) -> str:
    """The files' text, each with an equal share of the cap, cut at the end of a line; what is left out is said."""
    shown: list[str] = []
    for name, text in files.items():
        share = INLINE_CAP // len(files)
        kept = text if len(text) <= share else text[: text.rfind("\n", 0, share) + 1] or text[:share]
        left = text.count("\n") - kept.count("\n")
        more = f"({left} more rows are not shown)\n" if left else "(the rest is not shown)\n" if kept != text else ""
        shown.append(f"{name}:\n{kept}{more}")
    return "\n".join(shown)
