"""The first request of each coding agent, as it was on the wire: structure and names are theirs, all texts are filler.

`§9205§` stands for filler of so many characters.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from upstream import ANY, upstream
from wires import post  # pyright: ignore

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel

REQUESTS = Path(__file__).parent / "agents"
_FILLER = "filler words say nothing. "

ENVIRONMENT, REMINDER = "scaffold:environment", "scaffold:reminder"
#: How many tools each offers, and what is told apart beside them.
EXPECTED: dict[str, tuple[int, set[str]]] = {
    "claude_code": (12, {"system", "task", REMINDER, ENVIRONMENT}),  # system text among the messages, a deferred tool
    "cline": (25, {"system", "task", ENVIRONMENT}),
    "codex": (11, {"system", "task", ENVIRONMENT}),  # its tools stand among the items, and run JavaScript
    "codex_tools": (10, {"system", "task", ENVIRONMENT}),  # a tool with a grammar, tools that the provider runs
    "codex_unknown_model": (13, {"system", "task", ENVIRONMENT}),  # tools in a namespace
    "gemini_cli": (15, {"system", "task", ENVIRONMENT}),
    "opencode": (10, {"system", "task", ENVIRONMENT}),
    "pi": (4, {"system", "task"}),
    "qwen_code": (14, {"system", "task", REMINDER, ENVIRONMENT}),
}


def filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: filled(one) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one) for one in value]
    return re.sub(r"§(\d+)§", lambda m: (_FILLER * 1000)[: int(m[1])], value) if isinstance(value, str) else value


@pytest.mark.parametrize("name", EXPECTED)
def test_the_first_request_of_an_agent_is_read_and_told_apart(name: str) -> None:
    found = json.loads((REQUESTS / f"{name}.json").read_text("utf-8"))
    with upstream(ANY) as up, metered_endpoint(forward=up.url, counter=ScriptedModel([])) as url:
        assert post(url, filled(found["body"]), found["path"]).status_code == 200
        rows, (call,) = list(url.meter.figures.rows()), url.meter.calls
    tools, causes = EXPECTED[name]
    assert call.unread == ""
    assert {row["cause"] for row in rows} == {*causes, "tool_schema", "template", "unattributed"}
    assert len({row["detail"] for row in rows if row["cause"] == "tool_schema"}) == tools
    assert sum(row["tokens"] for row in rows) == call.input_tokens


def test_every_recorded_request_is_tried() -> None:
    assert {path.stem for path in REQUESTS.glob("*.json")} == set(EXPECTED)
