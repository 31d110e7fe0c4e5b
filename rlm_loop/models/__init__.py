"""Models: anything that completes a prompt.  Importing this package loads no client and no engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_loop.messages import Reply as Reply
    from rlm_loop.messages import ToolCall as ToolCall
    from rlm_loop.messages import Usage as Usage
    from rlm_loop.models.base import AuthenticationFailed as AuthenticationFailed
    from rlm_loop.models.base import DiskFull as DiskFull
    from rlm_loop.models.base import Diverged as Diverged
    from rlm_loop.models.base import Model as Model
    from rlm_loop.models.base import ModelError as ModelError
    from rlm_loop.models.base import ModelNotFound as ModelNotFound
    from rlm_loop.models.base import ModelUnreachable as ModelUnreachable
    from rlm_loop.models.base import RateLimited as RateLimited
    from rlm_loop.models.base import RequestRejected as RequestRejected
    from rlm_loop.models.base import RetryPolicy as RetryPolicy
    from rlm_loop.models.litellm import LiteLLMModel as LiteLLMModel
    from rlm_loop.models.local import LocalModel as LocalModel
    from rlm_loop.models.names import get_model as get_model
    from rlm_loop.models.ollama import OllamaModel as OllamaModel
    from rlm_loop.models.openai_compatible import OpenAICompatibleModel as OpenAICompatibleModel
    from rlm_loop.models.recorded import RecordedModel as RecordedModel
    from rlm_loop.models.scripted import ScriptedModel as ScriptedModel
    from rlm_loop.models.scripted import text_tokens as text_tokens

_NAMES = {
    "messages": "Reply ToolCall Usage",
    "models.base": "AuthenticationFailed DiskFull Diverged Model ModelError ModelNotFound ModelUnreachable RateLimited "
    "RequestRejected RetryPolicy",
    "models.litellm": "LiteLLMModel",
    "models.local": "LocalModel",
    "models.names": "get_model",
    "models.ollama": "OllamaModel",
    "models.openai_compatible": "OpenAICompatibleModel",
    "models.recorded": "RecordedModel",
    "models.scripted": "ScriptedModel text_tokens",
}
_WHERE = {name: f"rlm_loop.{module}" for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
