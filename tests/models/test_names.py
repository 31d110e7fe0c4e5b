from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import LiteLLMModel, LocalModel, ModelNotFound, OllamaModel, OpenAICompatibleModel, get_model


@pytest.mark.parametrize(
    ("name", "kind", "becomes"),
    [
        ("local", LocalModel, "local:qwen2.5-coder-1.5b"),
        ("local:local", LocalModel, "local:qwen2.5-coder-1.5b"),
        ("SmolLM2-135M", LocalModel, "local:smollm2-135m"),
        ("local:/some/where/file.gguf", LocalModel, "local:file.gguf"),
        ("ollama/qwen3-coder:30b", OllamaModel, "ollama/qwen3-coder:30b"),
        ("ollama_chat/qwen3-coder:30b", OllamaModel, "ollama/qwen3-coder:30b"),
        ("openai-compatible:a/b:c@http://h:1/v1", OpenAICompatibleModel, "openai-compatible:a/b:c@http://h:1/v1"),
        ("openai/gpt-5-nano", LiteLLMModel, "openai/gpt-5-nano"),
        ("gpt-5-nano", LiteLLMModel, "gpt-5-nano"),
    ],
)
def test_names(name: str, kind: type, becomes: str) -> None:
    model = get_model(name)
    assert (type(model), model.name) == (kind, becomes)
    agent: Any = ToolLoopAgent(model=model)  # which is a value, with its model
    for copied in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert copied.model is not model
        assert copied.model.name == becomes


MISSPELT = ["locl", "local:smolm2-135m", "qwen2.5-coder", "nonsense", ""]
INCOMPLETE = ["local:", "openai/", "openai-compatible:m", "openai-compatible:@http://h/v1"]


@pytest.mark.parametrize("name", [*MISSPELT, *INCOMPLETE])
def test_a_wrong_name_says_what_there_is(name: str) -> None:
    with pytest.raises(ModelNotFound, match=r"models list.*@http://HOST") as caught:
        get_model(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://localhost:11434"),
        ("box", "http://box:11434"),
        ("box:99", "http://box:99"),
        ("http://box:99/", "http://box:99"),
        ("https://box", "https://box"),
        ("0.0.0.0", "http://localhost:11434"),
        ("0.0.0.0:99", "http://localhost:99"),
    ],
)
def test_where_ollama_is(monkeypatch: pytest.MonkeyPatch, host: str, address: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    model = get_model("ollama/m")
    assert isinstance(model, OllamaModel)
    assert model.base_url == address


def test_importing_models_loads_no_client_and_no_engine() -> None:
    code = (
        "import sys; from rlm_loop.models import get_model, ScriptedModel, LocalModel, LiteLLMModel;"
        "get_model('local'); get_model('openai/x'); get_model('ollama/x');"
        "print([m for m in ('httpx', 'urllib3', 'xllamacpp', 'litellm', 'platformdirs', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
