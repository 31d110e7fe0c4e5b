"""From a model's name to the model."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlm_loop.models.base import Model, ModelNotFound
from rlm_loop.models.weights import find
from rlm_loop.plugins import plugin

#: What names the model of agents and commands that are given none.
MODEL_VARIABLE = "RLM_LOOP_MODEL"
#: Names that LiteLLM knows without a provider in front.
_BARE = re.compile(r"(gpt-|chatgpt-|o\d|claude-)")
_FORMS = "local, local:NAME, local:FILE.gguf, ollama/NAME, openai-compatible:MODEL@http://HOST:PORT/v1, PROVIDER/MODEL"


class Seeded(str):
    """A model's name with the seed of an episode: the model that is made of it has that seed."""

    seed = 0


def get_model(name: str | Model, **options: Any) -> Model:
    """Make the model of this name; a model object is returned as it is.

    - `local`, `local:smollm2-135m`, `local:/path/to/file.gguf`: llama.cpp in this process (`LocalModel`);
    - `ollama/NAME`: an Ollama server, at `$OLLAMA_HOST` where that is set;
    - `openai-compatible:MODEL@URL`: any endpoint that speaks the chat API;
    - `NAME/MODEL` where an installed package offers models under NAME (see `rlm_loop.plugins`);
    - `PROVIDER/MODEL`: everything else, through LiteLLM.

    `options` go to the model's constructor.  Nothing is loaded and no address is asked yet.  Raises
    `ModelNotFound` for a name that fits none of these.
    """
    if isinstance(name, Model):
        if options:
            raise TypeError(f"options ({', '.join(options)}) go with a model's name, not with a model object")
        return name
    wanted = name.strip()
    kind, _colon, rest = wanted.partition(":")
    provider, _slash, model = wanted.partition("/")
    local = rest if kind == "local" and rest else wanted
    if find(local) or local.endswith(".gguf") or (local != wanted and Path(local).expanduser().exists()):
        from rlm_loop.models.local import LocalModel

        return LocalModel(local, **options)
    if kind == "openai-compatible" and (chat := re.fullmatch("(.+)@(https?://.+)", rest)):
        from rlm_loop.models.openai_compatible import OpenAICompatibleModel

        return OpenAICompatibleModel(chat[1], chat[2], **options)
    if provider in ("ollama", "ollama_chat") and model:  # the second is LiteLLM's name, whose client sets no window
        from rlm_loop.models.ollama import OllamaModel

        return OllamaModel(model, ollama_address(os.environ.get("OLLAMA_HOST", "")), **options)
    if model and (made := plugin("models", provider)) is not None:
        return made(model, **options)
    if kind not in ("local", "openai-compatible") and ((provider and model) or _BARE.match(wanted)):
        from rlm_loop.models.litellm import LiteLLMModel

        return LiteLLMModel(wanted, **options)
    raise ModelNotFound(f"no model is called {name!r} (see `rlm-loop models list`): use {_FORMS}", name)


def default_model() -> str:
    """Return the model's name where none is given: that in the environment's `RLM_LOOP_MODEL`, else `local`."""
    return os.environ.get(MODEL_VARIABLE, "").strip() or "local"


def ollama_address(host: str) -> str:
    """Return the address of an Ollama server, from the forms that `OLLAMA_HOST` may have (`host`, `host:port`, URL)."""
    url = urlsplit(host if "://" in host else f"http://{host or 'localhost'}")
    place = url.netloc.replace("0.0.0.0", "localhost")  # what a server listens on is not what a client can call
    return f"{url.scheme}://{place}{'' if url.port or url.scheme == 'https' else ':11434'}"


def model_name(model: object) -> str:
    """Return the name of a model given by name or as an object; of a weight file without the folder it lies in."""
    return without_folder(model.name if isinstance(model, Model) else str(model))


def without_folder(text: str) -> str:
    """Return an absolute path, or a model name that holds one, as the file's name: results name no folders."""
    kind, colon, path = text.rpartition(":")
    return f"{kind}{colon}{path.rpartition('/')[2]}" if path.startswith("/") and "//" not in path else text
