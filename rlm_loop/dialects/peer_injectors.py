"""What other frameworks say around a task, byte for byte, and when they say it.

The texts are read from `peer_texts.json`; `{...}` in one is what the framework itself fills in.
`tests/dialects/peer_texts.json` holds the same texts as quoted from the packages, with the SHA-256 of each file; a test
compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from rlm_loop.actions import CallTool, RunCode
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import AddsNothing
from rlm_loop.outcome import Turn


@dataclass(frozen=True)
class PeerSource:
    """Where a text is from: `file` is the path in the package as it is installed."""

    package: str
    version: str
    file: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}, {self.file}"


_DATA: Mapping[str, Any] = json.loads((files("rlm_loop.dialects") / "peer_texts.json").read_text("utf-8"))

SOURCES: Mapping[str, PeerSource] = {name: PeerSource(**where) for name, where in _DATA["sources"].items()}
TEXTS: Mapping[str, str] = _DATA["texts"]


@dataclass(frozen=True)
class MelleaInitiator(AddsNothing):
    """mellea's goal template.  It ends with `Goal: `, so it leads: the question comes right after it."""

    text: str = TEXTS["MELLEA_INITIATOR"]
    name: str = "mellea_initiator"
    leads: bool = True

    def opening(self, problem: Problem) -> str:
        return self.text


@dataclass(frozen=True)
class RlmsTurnCounter:
    """rlms' `Turn 3/30:` before every reply, the first one after a warning not to answer yet."""

    limit: int = 30
    name: str = "rlms_turn_counter"

    def opening(self, problem: Problem) -> str:
        return TEXTS["RLMS_SAFEGUARD"] + TEXTS["RLMS_TURN"].format(iter_1=1, max_iter=self.limit)

    def after(self, turn: Turn) -> str:
        return TEXTS["RLMS_TURN"].format(iter_1=turn.index + 1, max_iter=self.limit)


@dataclass(frozen=True)
class RlmsVariables(AddsNothing):
    """rlms' line of the REPL's variables, once for each cell that ran: the names of the simple ones, in order."""

    text: str = TEXTS["RLMS_NAMES"]
    name: str = "rlms_variables"
    wants_variables: bool = True

    def after(self, turn: Turn) -> str:
        lines = [self.text.format(names=list(o.variables)) for o in turn.observations if o.variables]
        return "\n".join(lines)


@dataclass(frozen=True)
class DspyIteration:
    """dspy.RLM's `iteration` field."""

    limit: int = 20
    name: str = "dspy_iteration"

    def opening(self, problem: Problem) -> str:
        return TEXTS["DSPY_FIELD"].format(name="iteration") + f"1/{self.limit}"

    def after(self, turn: Turn) -> str:
        return TEXTS["DSPY_FIELD"].format(name="iteration") + f"{turn.index + 1}/{self.limit}"


@dataclass(frozen=True)
class SmolagentsEcho(AddsNothing):
    """The calls of a turn once more, as smolagents keeps them beside the reply: its CodeAgent so sends code twice."""

    name: str = "smolagents_code_echo"

    def after(self, turn: Turn) -> str:
        code = [a.code.strip() for a in turn.actions if isinstance(a, RunCode)]
        calls = [_call("python_interpreter", _as_json("\n\n".join(code)), f"call_{turn.index}")] if code else []
        for number, action in enumerate((a for a in turn.actions if isinstance(a, CallTool)), 1):
            calls.append(_call(action.name, _as_json(action.arguments), action.call_id or f"call_{number}"))
        return TEXTS["SMOLAGENTS_CALLING"].format(calls=calls) if calls else ""


def _call(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _as_json(text: str) -> Any:
    """smolagents' `make_json_serializable`: a text that looks like a JSON object or list is shown as one."""
    if text[:1] + text[-1:] in ("{}", "[]"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


@dataclass(frozen=True)
class SmolagentsRetry(AddsNothing):
    """smolagents' advice after a turn in which something failed, and only then."""

    text: str = TEXTS["SMOLAGENTS_RETRY"]
    name: str = "smolagents_retry"

    def after(self, turn: Turn) -> str:
        return "" if all(o.ok for o in turn.observations) else self.text


@dataclass(frozen=True)
class InspectContinue(AddsNothing):
    """inspect's continue prompt, after a reply that called no tool, and only then.

    `submit` is the name of the tool that ends a run; inspect fills in that of its own, which is `submit`.
    """

    submit: str = "final_answer"
    text: str = TEXTS["INSPECT_CONTINUE"]
    name: str = "inspect_continue"

    def after(self, turn: Turn) -> str:
        called = turn.reply.tool_calls or any(isinstance(a, (CallTool, RunCode)) for a in turn.actions)
        return "" if called else self.text.replace("{submit}", self.submit)


@dataclass(frozen=True)
class FastRlmBanner(AddsNothing):
    """fast-rlm's banner of the steps that remain, once half of them are used."""

    limit: int = 20
    name: str = "fast_rlm_banner"

    def after(self, turn: Turn) -> str:
        left = self.limit - turn.index
        return TEXTS["FAST_RLM_BANNER"].format(remaining=left, most=self.limit) if turn.index * 2 >= self.limit else ""


@dataclass(frozen=True)
class FastRlmNoCode(AddsNothing):
    """fast-rlm's complaint about a reply in which it found nothing to run."""

    text: str = TEXTS["FAST_RLM_NO_CODE"]
    name: str = "fast_rlm_no_code"

    def after(self, turn: Turn) -> str:
        return "" if any(isinstance(a, (CallTool, RunCode)) for a in turn.actions) else self.text
