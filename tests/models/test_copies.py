"""Agents and models are values: they can be copied, pickled and sent to another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import LiteLLMModel, LocalModel, Model, OllamaModel, OpenAICompatibleModel, ScriptedModel

COPIES: list[Callable[[Any], Any]] = [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
CELL = "```python\nfinal_answer = 6 * 7\n```"


@pytest.mark.parametrize("again", COPIES, ids=["deepcopy", "pickle"])
@pytest.mark.parametrize(
    "model",
    [
        LocalModel("local"),
        ScriptedModel([CELL]),
        OpenAICompatibleModel("m", "http://127.0.0.1:9/v1"),
        OllamaModel("m"),
        LiteLLMModel("openai/m"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_agent_can_be_copied_with_its_model(model: Model, again: Callable[[Any], Any]) -> None:
    copied = again(ToolLoopAgent(model=model))
    assert copied.model is not model
    assert copied.model.name == model.name
