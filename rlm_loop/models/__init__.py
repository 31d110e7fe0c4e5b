"""Models: anything that completes a prompt.  Importing this package loads no client and no engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_loop.messages import Reply, ToolCall, Usage
    from rlm_loop.models.base import (
        AuthenticationFailed,
        DiskFull,
        Diverged,
        Model,
        ModelError,
        ModelNotFound,
        ModelUnreachable,
        RateLimited,
        RequestRejected,
        RetryPolicy,
    )
    from rlm_loop.models.litellm import LiteLLMModel
    from rlm_loop.models.local import LocalModel
    from rlm_loop.models.names import get_model
    from rlm_loop.models.ollama import OllamaModel
    from rlm_loop.models.openai_compatible import OpenAICompatibleModel
    from rlm_loop.models.recorded import RecordedModel
    from rlm_loop.models.scripted import ScriptedModel, text_tokens

_WHERE = {
    "Reply": "rlm_loop.messages",
    "ToolCall": "rlm_loop.messages",
    "Usage": "rlm_loop.messages",
    **dict.fromkeys(("Model", "ModelError"), "rlm_loop.models.base"),
    **dict.fromkeys(("AuthenticationFailed", "DiskFull", "Diverged", "ModelNotFound"), "rlm_loop.models.base"),
    **dict.fromkeys(("ModelUnreachable", "RateLimited", "RequestRejected", "RetryPolicy"), "rlm_loop.models.base"),
    "LiteLLMModel": "rlm_loop.models.litellm",
    "LocalModel": "rlm_loop.models.local",
    "get_model": "rlm_loop.models.names",
    "OllamaModel": "rlm_loop.models.ollama",
    "OpenAICompatibleModel": "rlm_loop.models.openai_compatible",
    "RecordedModel": "rlm_loop.models.recorded",
    "ScriptedModel": "rlm_loop.models.scripted",
    "text_tokens": "rlm_loop.models.scripted",
}

__all__ = [
    "AuthenticationFailed",
    "DiskFull",
    "Diverged",
    "LiteLLMModel",
    "LocalModel",
    "Model",
    "ModelError",
    "ModelNotFound",
    "ModelUnreachable",
    "OllamaModel",
    "OpenAICompatibleModel",
    "RateLimited",
    "RecordedModel",
    "Reply",
    "RequestRejected",
    "RetryPolicy",
    "ScriptedModel",
    "ToolCall",
    "Usage",
    "get_model",
    "text_tokens",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
