"""From a model's name to the model."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any

from rlm_loop.models.base import Model, ModelNotFound
from rlm_loop.models.catalog import CATALOG, find

#: What names the model of agents and commands that are given none.
MODEL_VARIABLE = "RLM_LOOP_MODEL"
#: Names that LiteLLM knows without a provider in front.
_BARE = re.compile(r"(gpt-|chatgpt-|o\d|claude-)")
_CHAT = "openai-compatible"
_FORMS = "local, local:NAME, local:/path/to/file.gguf, ollama/NAME, openai-compatible:MODEL@URL, PROVIDER/MODEL"


class Seeded(str):
    """A model's name with the seed of an episode: the model that is made of it has that seed."""

    seed: int

    def __new__(cls, name: str, seed: int) -> Seeded:
        seeded = super().__new__(cls, name)
        seeded.seed = seed
        return seeded

    def __reduce__(self) -> tuple[type[Seeded], tuple[str, int]]:
        return Seeded, (str(self), self.seed)


def get_model(name: str | Model, **options: Any) -> Model:
    """Make the model of this name; a model object is returned as it is.

    - `local`, `local:smollm2-135m`, `local:/path/to/file.gguf`: llama.cpp in this process (`LocalModel`);
    - `ollama/NAME`: an Ollama server, at `$OLLAMA_HOST` where that is set;
    - `openai-compatible:MODEL@URL`: any endpoint that speaks the chat API;
    - `PROVIDER/MODEL`: everything else, through LiteLLM.

    `options` go to the model's constructor.  Nothing is loaded and no address is asked yet.  Raises
    `ModelNotFound` for a name that fits none of these, with the nearest names that do.
    """
    if isinstance(name, Model):
        if options:
            raise TypeError(f"options ({', '.join(options)}) go with a model's name, not with a model object")
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"model must be a name or a Model (derive yours from rlm_loop.models.Model), got {name!r:.60}")
    wanted = name.strip()
    kind, colon, rest = wanted.partition(":")
    provider, slash, model = wanted.partition("/")
    if kind == "local" and colon and not rest:
        raise ModelNotFound(f"{name!r} names no model: use {_FORMS}", name)
    if (kind == "local" and colon) or find(wanted) or wanted.endswith(".gguf"):
        return _local(rest if kind == "local" and colon else wanted, options)
    if kind == _CHAT and rest:
        model, _at, address = rest.partition("@http")
        if not (model and address):
            raise ModelNotFound(f"{name!r} has no address: use openai-compatible:MODEL@http://HOST:PORT/v1", name)
        from rlm_loop.models.openai_compatible import OpenAICompatibleModel

        return OpenAICompatibleModel(model, f"http{address}", **options)
    if provider in ("ollama", "ollama_chat") and model:  # the second is LiteLLM's name, whose client sets no window
        from rlm_loop.models.ollama import OllamaModel

        return OllamaModel(model, ollama_address(os.environ.get("OLLAMA_HOST", "")), **options)
    if (slash and provider and model) or _BARE.match(wanted):
        from rlm_loop.models.litellm import LiteLLMModel

        return LiteLLMModel(wanted, **options)
    raise ModelNotFound(f"no model is called {name!r}{_near(wanted)}: use {_FORMS}", name)


def default_model() -> str:
    """Return the model's name where none is given: that in the environment's `RLM_LOOP_MODEL`, else `local`."""
    return os.environ.get(MODEL_VARIABLE, "").strip() or "local"


def ollama_address(host: str) -> str:
    """Return the address of an Ollama server, from the forms that `OLLAMA_HOST` may have (`host`, `host:port`, URL)."""
    scheme, _sep, place = (host.strip().rstrip("/") or "localhost").rpartition("://")
    name, colon, port = place.partition(":")
    if name in ("0.0.0.0", ""):  # what a server listens on is not what a client can call
        place = f"localhost{colon}{port}"
    if scheme in ("", "http") and ":" not in place and "/" not in place:
        place += ":11434"
    return f"{scheme or 'http'}://{place}"


def _local(where: str, options: dict[str, Any]) -> Model:
    if not find(where) and not where.endswith(".gguf") and not Path(where).expanduser().exists() and "/" not in where:
        raise ModelNotFound(f"no local model is called {where!r}{_near(where)}: see `rlm-loop models list`", where)
    from rlm_loop.models.local import LocalModel

    return LocalModel(where, **options)


def _near(wanted: str) -> str:
    known = [word for entry in CATALOG for word in (entry.name, *entry.aliases)]
    near = difflib.get_close_matches(wanted.lower(), [*known, *(f"local:{n}" for n in known), "ollama"], 2, 0.6)
    return f" (near: {', '.join(near)})" if near else ""


def model_name(model: object) -> str:
    """Return the name of a model given by name or as an object; of a weight file without the folder it lies in."""
    return without_folder(model.name if isinstance(model, Model) else str(model))


def without_folder(text: str) -> str:
    """Return an absolute path, or a model name that holds one, as the file's name: results name no folders."""
    kind, colon, path = text.rpartition(":")
    return f"{kind}{colon}{path.rpartition('/')[2]}" if path.startswith("/") and "//" not in path else text
