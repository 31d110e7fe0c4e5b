"""The outcome of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from rlm_loop.accounting.ledger import Ledger
from rlm_loop.actions import Action, AnswerForm, FinalAnswer, Observation
from rlm_loop.messages import Reply, Usage
from rlm_loop.traces.received import shown
from rlm_loop.traces.redact import redact
from rlm_loop.traces.values import drawing


class Stop(StrEnum):
    """The reason why a run ended; equal to its name, so `outcome.stop == "answered"`."""

    ANSWERED = "answered"
    STEPS = "steps"
    SECONDS = "seconds"
    TOKENS = "tokens"
    COST = "cost"
    CALLS = "calls"
    MALFORMED = "malformed"
    REPEATED = "repeated"
    TOOL_FAILURES = "tool_failures"
    BLOCKED = "blocked"
    WINDOW = "window"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True)
class Turn:
    """A reply of the model, the actions that it asked for, and their results.  `index` counts from 1."""

    index: int
    reply: Reply
    actions: tuple[Action, ...]
    observations: tuple[Observation, ...]
    seconds: float = 0.0

    @property
    def answer(self) -> FinalAnswer | None:
        """The first answer that was given in this turn."""
        return next((o.answer for o in self.observations if o.answer is not None), None)

    @property
    def pending(self) -> FinalAnswer | None:
        """The last answer that was set by a cell which then raised."""
        return next((o.pending for o in reversed(self.observations) if o.pending is not None), None)


@dataclass(frozen=True)
class Score:
    """The verdict on an attempt: `resolved` decides, `value` grades (0 to 1), `reason` is one line.

    `resolved` is `None` where nothing judged the attempt: `reason` then says what would.  Such an attempt is counted
    neither as resolved nor as not resolved.
    """

    resolved: bool | None
    value: float = 0.0
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of a run.

    `answer` is the answer given, or the best one so far when the run ended for another reason (a pending
    answer, else the last reply in prose, else `None`; never the code of an unfinished turn, which `last_reply` has);
    `answered` tells the two apart.  `usage` and `ledger` cover every model call
    of the run.  `artifact` is what the task collects besides the answer (a git diff, a function's source),
    `evidence` what verified the result, `over_budget` whether a limit was exceeded, `reason` one line of why
    it stopped, `seconds` wall time and `working_seconds` the same without waits for rate limits.
    `trace` is the file of its trace, where there is one, and `run` the id of the run in it.
    `isolation` is what kept the cells apart from this machine (`sandbox`, `hardened`, `plain` ...; empty where no REPL
    was started).  `unfinished` is the text of a reply that was broken off, as far as a hook or a live view showed it.
    """

    answer: Any
    stop: Stop
    turns: Sequence[Turn]
    usage: Usage
    ledger: Ledger
    artifact: Any = None
    answer_form: AnswerForm | None = None
    evidence: Mapping[str, Any] | None = None
    over_budget: bool = False
    reason: str = ""
    seconds: float = 0.0
    working_seconds: float = 0.0
    trace: str | None = None
    question: str = ""
    model: str = ""
    agent: str = ""
    notes: tuple[str, ...] = ()
    isolation: str = ""
    run: str = ""
    unfinished: str = ""

    @property
    def answered(self) -> bool:
        return self.stop == Stop.ANSWERED

    @property
    def steps(self) -> int:
        """The number of turns, that is of replies by the root model."""
        return len(self.turns)

    @property
    def last_reply(self) -> str:
        """Text of the last reply, whatever it was: one that was broken off, code, a call, prose; empty without one."""
        if self.unfinished:
            return self.unfinished
        return self.turns[-1].reply.text if self.turns else ""

    def to_html(self) -> str:
        """The outcome as a notebook shows it: answer, why the run ended, costs, turns, tokens by cause."""
        return drawing("rlm_loop.report.notebook.html.outcome_html")(self)

    def to_notebook(self, path: str | Path) -> Path:
        """Write the run as a notebook file and return its path; see `report.notebook.saved`."""
        return drawing("rlm_loop.report.notebook.saved.write_notebook")(self, path)

    def _repr_html_(self) -> str | None:
        """`to_html`; nothing where a live view of the same cell shows the outcome."""
        return None if drawing("rlm_loop.report.notebook.live.is_shown")(self) else self.to_html()

    def __repr__(self) -> str:
        """Short, since notebooks and tracebacks show it; the turns are in `turns`."""
        answer, tokens = redact(shown(self.answer)), f"{self.usage.input_tokens} in, {self.usage.output_tokens} out"
        return f"<Outcome {answer:.200} stop={self.stop.value!r} steps={self.steps} tokens=({tokens})>"

    def __str__(self) -> str:
        tokens = f"{self.usage.input_tokens} tokens in, {self.usage.output_tokens} out"
        return f"{redact(shown(self.answer))}\n[{self.stop}, {self.steps} turns, {tokens}, {self.seconds:.1f} s]"
