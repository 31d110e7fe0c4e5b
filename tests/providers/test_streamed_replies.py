"""Who looks on while a reply is written changes nothing: the same run, row for row, with and without streaming."""

from __future__ import annotations

import gc
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from lazy import needs
from players import PLAYERS, QUESTION  # pyright: ignore
from serving import serving  # pyright: ignore
from test_provider_agents import PLACES  # pyright: ignore

from rlm_loop import Outcome

pytestmark = [
    needs("litellm", extra="litellm"),
    pytest.mark.filterwarnings("ignore"),  # LiteLLM's own
]

#: What differs between any two runs: times, ids, and where a server is.
PASSING = {"seconds", "at", "time", "ts", "run", "created", "created_at", "elapsed", "working_seconds"}


class Heard:
    """A hook that looks on."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def on_text(self, kind: str, text: str) -> None:
        self.told.append((kind, text))

    def replies(self) -> list[tuple[str, str]]:
        """What was heard of each call: its text and what it calls."""
        found: list[dict[str, str]] = []
        for kind, text in self.told:
            if kind == "begin":
                found.append({"text": "", "call": ""})
            elif kind in ("text", "call"):
                found[-1][kind] += text
        return [(one["text"], one["call"]) for one in found]


def run(place: str, player: str, path: Path, hooks: tuple[object, ...]) -> tuple[Outcome, list[Any], list[Any]]:
    """A run, its trace without what passes, and the requests that were sent."""
    where, who = PLACES[place], PLAYERS[player]
    with serving(where.provider(), *who.says) as server:
        outcome = who.agent(where.model(server)).run(QUESTION, trace=path, hooks=hooks)
        events = [json.loads(line.replace(server.address, "http://server")) for line in path.read_text().splitlines()]
    assert server.says == []
    return outcome, [without(event) for event in events], server.requests


def alike(rows: list[Any]) -> Any:
    for row in rows:
        if row["event"] == "reply":
            row["reply"]["extra"] = row["reply"]["extra"].get("not_applied")
    return json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}", "an id", json.dumps(rows)))


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if k not in PASSING}
    return [without(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("player", ["tool loop", "lean", "a refusal at first"])
@pytest.mark.parametrize(
    "place",
    [pytest.param(name, marks=pytest.mark.slow if "litellm" in name else ()) for name in PLACES],
)
def test_a_streamed_run_is_the_same_run(place: str, player: str, tmp_path: Path) -> None:
    heard = Heard()
    plain, rows, sent = run(place, player, tmp_path / "plain.jsonl", ())
    streamed, rows_again, sent_again = run(place, player, tmp_path / "streamed.jsonl", (heard,))
    assert not any(body.get("stream") for body in sent)
    assert all(body.get("stream") for body in sent_again)
    for body in sent_again:
        body.pop("stream_options", None)
    if place != "ollama, litellm":
        assert [{**body, "stream": None} for body in sent] == [{**body, "stream": None} for body in sent_again]
    if "litellm" in place:  # which says other things beside, and gives each of Ollama's calls an id by chance
        rows, rows_again = (alike(each) for each in (rows, rows_again))
    assert rows_again == rows
    assert (streamed.answer, streamed.stop, streamed.usage) == (plain.answer, plain.stop, plain.usage)
    assert streamed.ledger.by_cause() == plain.ledger.by_cause()
    assert [t.reply.text for t in streamed.turns] == [text for text, _ in heard.replies()]
    for turn, (_, called) in zip(streamed.turns, heard.replies(), strict=True):
        names = [line.split()[0] for line in called.split("\n") if line]
        assert names == [call.name for call in turn.reply.tool_calls]


@pytest.mark.slow  # the client takes seconds to import
@pytest.mark.parametrize("place", [name for name in PLACES if "litellm" in name])
def test_no_response_is_left_to_the_garbage_collector(place: str, tmp_path: Path) -> None:
    """It would close it while the next request holds the lock of the connections: that request then never ended."""
    gc.collect()
    run(place, "lean", tmp_path / "t.jsonl", (Heard(),))
    readers = [one for one in gc.get_objects() if inspect.isgenerator(one) and one.gi_frame is not None]
    assert [one for one in readers if "httpcore" in one.gi_code.co_filename] == []
