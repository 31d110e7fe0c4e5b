"""When a run had it right: every state of its workspace scored afterwards.

The trace holds the tree id after each action that changed files and the patch that leads to it, so nothing of the run
is needed any more.  What a run would have been worth with a smaller budget follows from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlm_loop.agents.attempts.generate import PatchResult
from rlm_loop.outcome import Outcome, Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task
from rlm_loop.traces.reader import RunRecord, read, records_of
from rlm_loop.traces.trace import Trace, TraceError

if TYPE_CHECKING:
    import pandas as pd

#: What a budget can be counted in: turns, prompt tokens, prompt and output tokens, or seconds.
By = Literal["step", "prompt_tokens", "tokens", "seconds"]

#: Scores that are known, by task and by the hash of the patch.
Scores = MutableMapping[tuple[str, str], Score]


@dataclass(frozen=True)
class State:
    """The workspace after a step, and what was spent until then.

    `step` counts the turns of all attempts, 0 is the start; `attempt` is the node that made it.  Tokens are those of
    all model calls until then, sub-calls included (`None`: not known), `seconds` the time of the turns.  `resolved` is
    `None` where the patch is not in the trace because it was too large, or nothing could judge it.
    """

    step: int = 0
    attempt: str = "0"
    prompt_tokens: int | None = 0
    output_tokens: int | None = 0
    seconds: float = 0.0
    changed: bool = False
    tree: str = ""
    patch: str | None = ""
    resolved: bool | None = None
    value: float = 0.0
    reason: str = ""

    @property
    def tokens(self) -> int | None:
        """Prompt and output tokens."""
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        return self.prompt_tokens + self.output_tokens


@dataclass(frozen=True)
class Anytime:
    """A run seen step by step: `states` begins with the start (step 0), and `scored` patches were told apart.

    The last state is what the run handed in; where that is not what the last step left (several attempts, of which
    one is chosen), it is a state of its own with the same step.
    """

    task: str
    states: tuple[State, ...]
    scored: int

    @property
    def resolved(self) -> bool:
        """Whether the last state is right."""
        return bool(self.states[-1].resolved)

    @property
    def resolved_at(self) -> int | None:
        """The first step after which it was right; `None` if it never was."""
        return next((state.step for state in self.states if state.resolved), None)

    @property
    def broken_at(self) -> int | None:
        """The first step after that which made it wrong again; `None` if none did."""
        first = self.resolved_at
        if first is None:
            return None
        return next((s.step for s in self.states if s.step > first and s.resolved is False), None)

    @property
    def broken_later(self) -> bool:
        """It was right once, and is wrong at the end."""
        return self.resolved_at is not None and not self.resolved

    def within(self, budget: float, by: By = "step") -> State | None:
        """The state that a run with a smaller budget would have ended with: after the last step that it covers.

        `None` where what was spent is not known.
        """
        last: State | None = None
        for state in self.states:
            spent = getattr(state, by)
            if spent is None:
                return None
            if spent > budget:
                break
            last = state
        return last

    def frame(self) -> pd.DataFrame:
        """One row a step."""
        import pandas as pd

        rows = [{**asdict(state), "tokens": state.tokens} for state in self.states]
        return pd.DataFrame(rows).drop(columns="patch").assign(task=self.task)


def anytime(
    task: Task, run: str | Path | RunRecord | Trace | Outcome | PatchResult, *, scores: Scores | None = None
) -> Anytime:
    """Score every state of a recorded run's workspace, each distinct patch once.

    `run` is a trace (file, record or one in memory), or an outcome or result whose trace is a file.  `scores` keeps
    what is known across runs of the same tasks.  Raises `TraceError` where there is no trace, or it is not one of this
    task.
    """
    record = _record(run)
    if record.start.get("task") != task.id:
        raise TraceError(f"the trace is of task {record.start.get('task')!r}, not of {task.id!r}; give its own task")
    known: Scores = {} if scores is None else scores
    asked: set[str] = set()
    states: list[State] = []
    for at in _states(record):
        score = _scored(task, at.patch, known, asked)
        if score is None:
            states.append(replace(at, reason="the patch is too large for a trace"))
        else:
            states.append(replace(at, resolved=score.resolved, value=score.value, reason=score.reason))
    return Anytime(task.id, tuple(states), len(asked))


def _states(record: RunRecord) -> Iterator[State]:
    """The states, not yet scored."""
    patches: dict[tuple[str, str], str | None] = {}
    at = State()
    yield at
    for event in record.events:
        match event["event"]:
            case "tree":
                text = record.texts.get(event["patch"]) if event["patch"] is not None else None
                patches[event["node"], event["tree"]] = text
            case "attempt_start":
                # the checkout begins anew, with what was handed over
                at = replace(at, tree="", patch=record.texts.get(event["patch"], ""))
            case "reply":
                usage: Mapping[str, Any] = event["reply"].get("usage") or {}
                read, written = usage.get("input_tokens"), usage.get("output_tokens")
                sums = _plus(at.prompt_tokens, read), _plus(at.output_tokens, written)
                at = replace(at, prompt_tokens=sums[0], output_tokens=sums[1])
            case "turn" if not event.get("depth", 0):
                node, before = str(event.get("node", "0")), at.patch
                at = replace(at, step=event["turn"], attempt=node, seconds=at.seconds + event.get("seconds", 0.0))
                for seen in event["observations"]:
                    if tree := (seen.get("effects") or {}).get("tree"):
                        at = replace(at, tree=tree, patch=patches.get((node, tree)))
                at = replace(at, changed=at.patch != before)
                yield at
            case "run_end" if event.get("node", "0") == "0":
                # what was handed in: of several attempts the chosen one's, and what changed after the last action
                patch: object = event.get("artifact")
                if isinstance(patch, str) and patch != at.patch:
                    yield replace(at, tree="", patch=patch, attempt="0", changed=True)
            case _:
                pass


def _scored(task: Task, patch: str | None, known: Scores, asked: set[str]) -> Score | None:
    if patch is None:
        return None
    name = hashlib.sha256(patch.encode("utf-8", "surrogatepass")).hexdigest()
    asked.add(name)
    if (task.id, name) not in known:
        known[task.id, name] = task.judge(Attempt(None, patch, False))
    return known[task.id, name]


def _record(run: str | Path | RunRecord | Trace | Outcome | PatchResult) -> RunRecord:
    if isinstance(run, RunRecord):
        return run
    if isinstance(run, str | Path):
        return read(run)
    if isinstance(run, Trace) and run.path is None and (runs := records_of(run.events)):
        return runs[-1]
    path = run.path if isinstance(run, Trace) else run.trace
    if path is None:
        raise TraceError("this run has no trace to be scored by; run it with trace='run.jsonl'")
    done = run if isinstance(run, Outcome) else getattr(run, "outcome", None)
    return read(path, run=done.run if isinstance(done, Outcome) else None)


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
