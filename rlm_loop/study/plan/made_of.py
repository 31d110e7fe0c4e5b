"""What results depend on besides a study's own settings: this package's code, and the weights of local models."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from rlm_loop import __version__
from rlm_loop.hints.install import DISTRIBUTION
from rlm_loop.models import get_model
from rlm_loop.models.base import ModelError
from rlm_loop.study.plan.grid import Agent
from rlm_loop.workspace.git import Git, WorkspaceError

_HERE = Path(__file__).parents[2]


@functools.cache
def package() -> dict[str, str | None]:
    """This package: its version, the commit (`None` where that is not known) and a hash of its code.

    The commit is for people; the hash says whether the code is the same, changes without a commit included.
    """
    code = hashlib.sha256()
    for file in sorted(_HERE.rglob("*.py")):
        code.update(f"{file.relative_to(_HERE).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return {"version": __version__, "commit": _commit(), "code": code.hexdigest()[:16]}


def _commit() -> str | None:
    if (_HERE.parent / ".git").exists():
        try:
            return Git(_HERE.parent / ".git", _HERE.parent, seconds=10)("rev-parse", "HEAD").decode().strip() or None
        except (OSError, WorkspaceError):
            return None
    try:
        origin = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        return json.loads(origin or "{}").get("vcs_info", {}).get("commit_id")
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return None


def local_models(agents: Iterable[Agent]) -> dict[str, dict[str, Any]]:
    """By name, the local models of agents: the SHA-256 of the weights (`None`: not here) and the number of slots."""
    found: dict[str, dict[str, Any]] = {}
    for agent in agents:
        for role in ("model", "sub_model"):
            model = _made(getattr(agent, role, None))
            if hasattr(model, "weights_hash"):
                found[model.name] = {"weights": model.weights_hash, "slots": model.slots}
    return found


def _made(model: Any) -> Any:
    if isinstance(model, str):
        if "/" in model and not model.endswith(".gguf"):  # a provider's: its client need not be loaded for this
            return None
        try:
            return get_model(model)
        except ModelError:
            return None
    return model
