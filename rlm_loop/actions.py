"""Actions that a model asks for, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

FailureKind = Literal[
    "malformed",  # the reply could not be read
    "cut_off",  # the reply was ended by the length limit
    "unknown_tool",
    "invalid_arguments",
    "denied",
    "timeout",
    "runtime",  # the tool or the cell raised
    "died",  # the REPL's process ended
    "skipped",  # not run: an earlier action failed or answered
    "rejected",  # an answer that a type or a check refused
    "budget",  # nothing left to spend
    "interrupted",  # the user stopped it
]

AnswerForm = Literal["object", "repr", "text"]


class Note(StrEnum):
    """Remarks of the parser by which something is decided.  Other notes of an action are for readers only."""

    REFUSAL = "refusal"  # the model declines
    BLOCKED = "blocked"  # the model says that it cannot go on
    UNCLOSED = "unclosed fence"
    NO_COMPILE = "does not compile"
    PYTHON = "looks like python"
    EMPTY_ANSWER = "empty answer"


@dataclass(frozen=True)
class FinalAnswer:
    """An answer that was given.  Its presence is the sign, so `None`, `0`, `""` and NaN are legal values.

    `form` says how the value crossed from the REPL: the Python `object`, its `repr`, or a reply's `text`.
    """

    value: Any
    form: AnswerForm = "text"


@dataclass(frozen=True)
class Display:
    """A rich output of a cell, in the form of Jupyter's: `data` is base64 for a PNG or JPEG, else text."""

    mime: str
    data: str


@dataclass(frozen=True)
class RunCode:
    """Run a cell in the REPL.  `notes` are what parsing noticed (an unclosed fence, a nested one ...)."""

    code: str
    call_id: str | None = None
    notes: tuple[str, ...] = ()


#: The statements of a typed action, as properties of a JSON schema, and the cause that their tokens are charged to.
INTENT: Mapping[str, Mapping[str, Any]] = {
    "expected_outcome": {"type": "string", "description": "what this call should lead to"},
    "stop_condition": {"type": "string", "description": "when you will stop"},
    "risk": {"type": "string", "enum": ["low", "medium", "high"], "description": "of harm that cannot be undone"},
}
INTENT_CAUSE = "scaffold:typed_action"


@dataclass(frozen=True)
class CallTool:
    """Call a tool by name; `arguments` is raw JSON text.  `lenient` marks a call read out of plain text.

    `intent` has what a typed action states (`expected_outcome`, `stop_condition`, `risk`), as far as it was given.
    """

    name: str
    arguments: str = ""
    call_id: str | None = None
    lenient: bool = False
    notes: tuple[str, ...] = ()
    intent: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True)
class Answer:
    """The reply itself is the answer."""

    value: Any
    call_id: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Malformed:
    """A reply, or a part of it, that cannot be read; `reason` is the one line that the model is told."""

    reason: str
    kind: FailureKind = "malformed"
    call_id: str | None = None
    notes: tuple[str, ...] = ()


Action = RunCode | CallTool | Answer | Malformed


@dataclass(frozen=True)
class Failure:
    """A mistake of the model, as data.  Faults of ours or of a provider are exceptions instead."""

    kind: FailureKind
    message: str


@dataclass(frozen=True)
class Observation:
    """The result of one action.  `text` is the part that the model may see, already clipped.

    `cause` is what the text is charged to, `answer` the answer that this action gave, `pending` one that was set by a
    cell which then raised, `effects` the files it changed (`{"added": [...], "changed": [...], "removed": [...],
    "hashes": {...}, "tree": ...}`, see `effects`), `displays` pictures and tables for a reader (never for the model).
    `full` is for the record: what `text` was before it was clipped, up to a cap of its own; empty where nothing was
    left out. `printed` is what a tool printed, which no model sees. `repeatable` says that the same again is no
    standstill: a tool that polls, a call with an idempotency key, a model that samples.
    """

    text: str = ""
    failure: Failure | None = None
    cause: Literal["repl_output", "tool_result", "error"] = "tool_result"
    answer: FinalAnswer | None = None
    pending: FinalAnswer | None = None
    seconds: float = 0.0
    truncated: bool = False
    effects: Mapping[str, Any] = field(default_factory=dict[str, Any])
    displays: tuple[Display, ...] = ()
    full: str = ""
    repeatable: bool = False
    printed: str = ""

    @property
    def ok(self) -> bool:
        return self.failure is None

    @classmethod
    def failed(cls, kind: FailureKind, message: str) -> Observation:
        """Return the result of an action that came to nothing; the model reads the message."""
        return cls(message, Failure(kind, message), "error")
