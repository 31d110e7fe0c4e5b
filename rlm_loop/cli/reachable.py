"""Which models can be asked from here: files on this machine, a server of Ollama's, and providers with a key."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping

from rlm_loop.cli.machine import Finding

#: The environment's variable of each provider's key (as LiteLLM has it), and the names of the models that it reaches.
KEYS: Mapping[str, tuple[str, ...]] = {
    "OPENAI_API_KEY": ("openai/NAME",),
    "ANTHROPIC_API_KEY": ("anthropic/NAME",),
    "GEMINI_API_KEY": ("gemini/NAME",),
    "GOOGLE_API_KEY": ("gemini/NAME",),
    "MISTRAL_API_KEY": ("mistral/NAME",),
    "GROQ_API_KEY": ("groq/NAME",),
    "DEEPSEEK_API_KEY": ("deepseek/NAME",),
    "OPENROUTER_API_KEY": ("openrouter/OWNER/NAME",),
    "XAI_API_KEY": ("xai/NAME",),
    "TOGETHERAI_API_KEY": ("together_ai/OWNER/NAME",),
    "FIREWORKS_AI_API_KEY": ("fireworks_ai/NAME",),
    "CEREBRAS_API_KEY": ("cerebras/NAME",),
}
_WAIT = 1.0  # seconds for Ollama's list
_LISTED = 4


def models() -> list[Finding]:
    """What names the default model, the models of this machine, and what keys reach.  No key is shown or sent."""
    return [default(), *on_this_machine(), ollama(), *by_key(os.environ)]


def default() -> Finding:
    """What agents and commands take that are given no model."""
    from rlm_loop.models import ModelError, get_model
    from rlm_loop.models.names import MODEL_VARIABLE, default_model

    name = default_model()
    said = f"names {name}" if os.environ.get(MODEL_VARIABLE, "").strip() else f"not set: {name} is taken"
    try:
        get_model(name)
    except (ModelError, ValueError) as error:
        return Finding(MODEL_VARIABLE, False, f"names {name}, which is no model", f"{error}")
    return Finding(MODEL_VARIABLE, True, said)


def on_this_machine() -> list[Finding]:
    """The local models that are known by name."""
    from rlm_loop.models.weights import list_models

    found: list[Finding] = []
    for listed in list_models():
        name, size = listed.known.name, f"{listed.known.size / 1e6:,.0f} MB"
        how, state = f"rlm-loop models pull {name}", "fetched in part" if listed.state == "partial" else "not here"
        there = listed.state == "ready"
        found.append(Finding(f"local:{name}", there, f"ready, {size}" if there else f"{state} ({size})", how))
    return found


def ollama() -> Finding:
    """Whether a server of Ollama's answers, and what it has."""
    from rlm_loop.models.names import ollama_address

    address = ollama_address(os.environ.get("OLLAMA_HOST", ""))
    how = "start it with `ollama serve`; OLLAMA_HOST names another address"
    try:
        with urllib.request.urlopen(f"{address}/api/tags", timeout=_WAIT) as reply:
            names = [str(model["name"]) for model in json.load(reply)["models"]]
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError):
        return Finding("ollama", False, f"no server answers at {address}", how)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = ", ".join(f"ollama/{name}" for name in names[:_LISTED]) + more
    return Finding("ollama", True, listed or f"{address} has no models: ollama pull NAME")


def by_key(environment: Mapping[str, str]) -> list[Finding]:
    """Which providers have a key in an environment."""
    found = [Finding(name, True, f"set: {', '.join(KEYS[name])}") for name in KEYS if environment.get(name, "").strip()]
    how = "export OPENAI_API_KEY=... or that of another provider: docs/models.md"
    return found or [Finding("keys", False, "no provider's key is in the environment", how)]
