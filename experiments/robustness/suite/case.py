"""What a robustness case is: what is done, and what must be true afterwards, both as data.

A case knows nothing of the session that it is run on, so the same one can be put to ours and to other projects'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Error = Literal["none", "raised", "stopped", "died"]
"""How a cell ended: as it should, with an exception, stopped at its time limit, or with the end of its process."""

ENDED_WELL: frozenset[Error] = frozenset(["none"])
RAISED: frozenset[Error] = frozenset(["raised"])
STOPPED: frozenset[Error] = frozenset(["stopped"])
DIED: frozenset[Error] = frozenset(["died"])
ANY_END: frozenset[Error] = frozenset(["none", "raised", "stopped", "died"])
REFUSED_OR_DIED: frozenset[Error] = frozenset(["raised", "died"])

Keeps = Literal["variables", "told", "session"]
"""What is left after a case: all variables; all of them or a word that names those lost; at least a usable session."""

ORDINARY = frozenset(["output", "answers and values", "names over cells", "source text", "context from outside"])
"""Themes of ordinary work.  A session that refuses such a cell by a rule fails the case; elsewhere it does well."""

Value = tuple[Any] | tuple[()]
"""An answer that may be `None`: a tuple of one, or the empty one where there is none."""

#: In `hides`: the secret of the world that the case was run in.
SECRET = "\0secret"


@dataclass(frozen=True)
class Seen:
    """What one cell led to, in the same words for every kind of session.

    `output` is what a model would be shown, `message` what else it is told, `answer` the answer that the cell gave,
    `lost` the names that the session says are gone, `seconds` how long the call took, as its caller saw it.
    `refused` says that the error was a rule of the session, which does not allow what the cell says.
    """

    output: str = ""
    error: Error = "none"
    message: str = ""
    answer: Value = ()
    lost: tuple[str, ...] = ()
    seconds: float = 0.0
    refused: bool = False


@dataclass(frozen=True)
class CellStep:
    """One cell and what must be true of it.  What is left out is not looked at.

    `error` holds the ways in which it may end, `output` the text that it must show (exactly, but for the blanks at
    its end), `shows` and `hides` what must and must not be found in what the model is told, `answer` the answer that
    it must give (`()`: none), `characters` the longest output that is allowed.
    """

    code: str
    error: frozenset[Error] = ENDED_WELL
    output: str | None = None
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    answer: Value | None = None
    characters: int = 70_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """What all cases have: a name, a theme, what is done, what must be true, and the most seconds it may take.

    `needs` are features that a session must have for the case to mean anything (see `kinds.FEATURES`); elsewhere the
    case is not applicable.  `seconds` is a bound for the whole case, the start of the session not included; an
    endless cell has a stricter one, that of the session.
    """

    name: str
    theme: str
    does: str
    must: str
    needs: frozenset[str] = frozenset()
    seconds: float = 10.0


@dataclass(frozen=True, kw_only=True)
class CellCase(Case):
    """Cells that are run one after the other in one session.

    `given` are variables set from outside beforehand, made when the case is run.  `after` names what is looked at
    from outside at the end (see `world.World`).  `keeps` is what must be left.  `fresh` asks for a session that no
    other case has used and that no other will use.  `apart` says that the case can harm the process it is started
    from, where a session does not protect that.  `options` are for the session, `host_killed` ends the host with
    SIGKILL while the last cell runs: then nothing of the session may be left.
    """

    steps: tuple[CellStep, ...]
    keeps: Keeps = "variables"
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: tuple[str, ...] = ()
    fresh: bool = False
    apart: bool = False
    host_killed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class ScriptedReply:
    """A scripted reply that is more than a text: how it ended, and calls of tools as `(name, arguments)`."""

    text: str = ""
    finish_reason: str = "stop"
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Played:
    """What a run of a loop over scripted replies came to.

    `answer` is the answer given (`()`: none), `stop` why the run ended in the words of the loop (`"asked again"`
    where it wanted a reply that the script does not have), `steps` the number of replies used, `told` all that the
    model was told after its first reply, `error` the exception that left the loop, if one did.
    """

    answer: Value = ()
    stop: str = ""
    steps: int = 0
    told: str = ""
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ReplyCase(Case):
    """Scripted replies of a model, and what the run over them must come to.  What is left out is not looked at.

    `answer` is the answer that must be given (`()`: none), `stop` the reasons to end that are right, `steps` how many
    replies must be used, `shows` and `hides` what must and must not be found in what the model is told.  `loop` is the
    strategy, `settings` are for it; both are ours alone, so a case with either is not put to others.
    """

    replies: tuple[str | ScriptedReply, ...]
    answer: Value | None = None
    stop: frozenset[str] | None = None
    steps: int | None = None
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    context: Any = None
    loop: str = "tool-loop"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    theme: str = "replies"


@dataclass(frozen=True)
class CaseResult:
    """How a kind of session stood a case: `green`, `red` with the reason, or `n/a` with the reason.

    `seconds` is the time of the whole case, `slowest` that of its slowest cell, and `bound` the longest that an
    endless cell may take, all in seconds; `bound` is `None` where the case has no such cell.
    """

    case: str
    kind: str
    colour: Literal["green", "red", "n/a"]
    reason: str = ""
    seconds: float = 0.0
    slowest: float = 0.0
    bound: float | None = None


def block(code: str, language: str = "python") -> str:
    """A reply that is one fenced block."""
    return f"```{language}\n{code}\n```"
