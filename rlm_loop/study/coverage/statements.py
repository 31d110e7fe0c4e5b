"""The cells that an agent of a trace ran, as statements in order, and how each agent gave its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.accounting.tree.build import node_of
from rlm_loop.study.coverage.names import Statement, statements
from rlm_loop.study.coverage.texts import answer_text
from rlm_loop.traces.reader import RunRecord


@dataclass(frozen=True)
class RunStatement:
    """One statement that was run: by which node, in which of its turns and cells (from 1), and if that cell raised."""

    node: str
    turn: int
    cell: int
    code: Statement
    failed: bool = False

    @property
    def where(self) -> str:
        return f"{self.node} turn {self.turn} cell {self.cell} line {self.code.line}"


@dataclass(frozen=True)
class GivenAnswer:
    """The answer of a node: its text, the turn and cell that gave it, and whether code did (`in_code`)."""

    text: str
    turn: int
    cell: int
    in_code: bool


def statements_of(record: RunRecord, node: str) -> list[RunStatement]:
    """All statements that a node ran, in order.  Of a cell that raised some may not have been reached."""
    return [
        RunStatement(node, turn, cell, statement, failed)
        for turn, cell, action, observation in _done(record, node)
        if (code := code_of(action)) is not None and not _skipped(observation)
        for failed in [observation.get("failure") is not None]
        for statement in statements(code)
    ]


def answer_of(record: RunRecord, node: str) -> GivenAnswer | None:
    """How a node answered; the last pending answer where none was accepted, `None` where there is none."""
    found: GivenAnswer | None = None
    for turn, cell, action, observation in _done(record, node):
        given = observation.get("answer") or observation.get("pending")
        if given is not None:
            found = GivenAnswer(answer_text(given["value"]), turn, cell, code_of(action) is not None)
    return found


def _done(record: RunRecord, node: str) -> Iterator[tuple[int, int, Mapping[str, Any], Mapping[str, Any]]]:
    for event in record.events:
        if event["event"] not in ("request", "reply", "turn", "model_error") or node_of(event) != node:
            continue
        if event["event"] == "turn":
            pairs = zip(event["actions"], event["observations"], strict=True)
            yield from ((event["turn"], cell, a, o) for cell, (a, o) in enumerate(pairs, 1))


def code_of(action: Mapping[str, Any]) -> str | None:
    """The code of a stored action, if it ran some: a block, or a call of the tool `python`."""
    if action["is"] == "RunCode":
        return str(action["code"])
    if action["is"] != "CallTool" or action["name"] != "python":
        return None
    try:
        arguments = json.loads(action["arguments"] or "{}")
    except ValueError:
        return None
    return next((v for v in arguments.values() if isinstance(v, str)), None) if isinstance(arguments, dict) else None


def _skipped(observation: Mapping[str, Any]) -> bool:
    failure = observation.get("failure")
    return failure is not None and failure["kind"] in ("skipped", "malformed", "invalid_arguments", "budget", "denied")
