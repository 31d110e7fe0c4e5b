"""Models: anything that completes a prompt.  Importing this package loads no client and no engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlm_loop.messages import Reply as Reply
from rlm_loop.messages import ToolCall as ToolCall
from rlm_loop.messages import Usage as Usage
from rlm_loop.models.base import AuthenticationFailed as AuthenticationFailed
from rlm_loop.models.base import Diverged as Diverged
from rlm_loop.models.base import Model as Model
from rlm_loop.models.base import ModelError as ModelError
from rlm_loop.models.base import ModelNotFound as ModelNotFound
from rlm_loop.models.base import ModelUnreachable as ModelUnreachable
from rlm_loop.models.base import RateLimited as RateLimited
from rlm_loop.models.base import RequestRejected as RequestRejected
from rlm_loop.models.base import RetryPolicy as RetryPolicy
from rlm_loop.models.names import get_model as get_model
from rlm_loop.models.recorded import RecordedModel as RecordedModel
from rlm_loop.models.scripted import ScriptedModel as ScriptedModel
from rlm_loop.models.scripted import text_tokens as text_tokens

if TYPE_CHECKING:
    from rlm_loop.models.litellm import LiteLLMModel as LiteLLMModel
    from rlm_loop.models.local import LocalModel as LocalModel
    from rlm_loop.models.ollama import OllamaModel as OllamaModel
    from rlm_loop.models.openai_compatible import OpenAICompatibleModel as OpenAICompatibleModel

_CLIENTS = {f"{name.replace('_', '')}model": name for name in ("litellm", "local", "ollama", "openai_compatible")}


def __getattr__(name: str) -> Any:
    if name.lower() not in _CLIENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_CLIENTS[name.lower()]}"), name)
