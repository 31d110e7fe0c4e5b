"""Replies of a class of one's own: told of what is wrong in them, and on record where nothing is."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlm_loop import LeanAgent
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.models import Model
from rlm_loop.traces import read

CALL = ToolCall("1", "final_answer", '{"answer": 5}')


class Saying(Model):
    """A model that gives the same reply to everything."""

    name = "mine"

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        return self._reply


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (None, "returned None: return a Reply"),
        (Reply("5", usage={"input_tokens": 3}), "return a Reply with a Usage or None"),  # pyright: ignore[reportArgumentType]
        (Reply("5", usage=Usage("3", 1)), "usage.input_tokens is '3': use a number"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_wrong_in_a_reply_is_named(reply: Any, says: str) -> None:
    with pytest.raises(TypeError) as caught:
        LeanAgent(Saying(reply)).run("?")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("stated", "kept"),
    [
        (Usage(np.int64(5), 3, cost=np.float32(0.5)), Usage(5, 3, cost=0.5)),  # pyright: ignore[reportArgumentType]
        (Usage(5.0, True, cost=Decimal("0.5")), Usage(5, 1, cost=0.5)),  # pyright: ignore[reportArgumentType]
        (Usage(5, 3, cost=float("nan")), Usage(5, 3)),
        (Usage(-5, 3), Usage(None, 3)),
        (Usage(10**20, 10**400, cost=float("inf")), Usage(None, None)),
    ],
)
def test_figures_of_any_kind_of_number_are_read_back(stated: Usage, kept: Usage, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    calls: Any = [CALL]
    live = LeanAgent(Saying(Reply("", calls, usage=stated))).run("?", trace=file)
    past = outcome_of(read(file))
    assert (live.answer, live.usage, past.answer, past.usage) == (5, kept, 5, kept)
    assert {type(figure) for figure in vars(live.usage).values()} <= {int, float, type(None)}
