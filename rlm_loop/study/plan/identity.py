"""Identity of a study: the part of its configuration that must not change while its results grow."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.models import LocalModel
from rlm_loop.models.llama_server import llama_build
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Agents, Episode, StudyAgent, arm_settings, made_model, models_of, task_digest
from rlm_loop.study.store.reading import BY_TASK, SCHEMA
from rlm_loop.traces.redact import redact
from rlm_loop.versions import __version__
from rlm_loop.workspace.git import Git, WorkspaceError


def identity(name: str, agents: Agents, grid: Sequence[Episode], seeds: Sequence[int]) -> dict[str, Any]:
    """The identity of a study: its arms' settings, models, seeds and local weights, and the tasks of its grid."""
    arms: dict[str, dict[str, dict[str, Any]]] = {}
    for (model, _), by_arm in agents.items():
        for arm, agent in by_arm.items():
            settings = arm_settings(agent)
            arms.setdefault(arm, {}).setdefault(model, {"digest": digest(settings)[:16], "settings": settings})
    marks: dict[str, dict[str, dict[str, str]]] = {part: {} for part in BY_TASK}
    for (suite, _), task in {(c.suite, c.task.id): c.task for c in grid}.items():
        for part, mark in zip(BY_TASK, (task_digest(task), *task.judged_by), strict=True):
            marks[part].setdefault(suite, {})[task.id] = mark
    return {
        "schema": SCHEMA,
        "name": name,
        "arms": arms,
        "models": sorted({model for model, _ in agents}),
        "seeds": list(seeds),
        **marks,
        "local_models": local_models(agent for by_arm in agents.values() for agent in by_arm.values()),
        "package": dict(package()),
    }


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys that differ in what both have.  What only one of them has is an extension, not a change."""
    found = ["name"] if old["name"] != new["name"] else []
    for arm, by_model in new["arms"].items():
        for model, entry in by_model.items():
            before = old["arms"].get(arm, {}).get(model, entry)
            if before["digest"] != entry["digest"]:
                found += _differing(before["settings"], entry["settings"], f"arms.{arm}")
    for part in BY_TASK:
        for suite, marks in new[part].items():
            before = old[part].get(suite, {})
            found += [f"{part}.{suite}.{t}" for t, mark in marks.items() if before.get(t, mark) != mark]
    for model, of in new["local_models"].items():
        before = old["local_models"].get(model, of)
        known = [what for what in of if of[what] is not None and before.get(what) is not None]
        found += [f"{what} of {model}" for what in known if of[what] != before[what]]
    return found


def _differing(old: Any, new: Any, path: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [p for k in keys for p in _differing(old.get(k), new.get(k), f"{path}.{k}")]
    return [] if old == new else [path]


def mixture(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """A difference that `mixed=True` allows, in words: another hash of the package."""
    before, now = old["package"], new["package"]
    if before["code"] == now["code"]:
        return ""
    shown = [f"{p['version']}, {str(p['commit'] or 'no commit')[:10]}, code {p['code'][:8]}" for p in (before, now)]
    return f"it was begun with another rlm-loop ({shown[0]}; now {shown[1]})"


def extended(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], folder: str | Path, *, more: bool, mixed: bool
) -> dict[str, Any]:
    """`new` together with what `old` already had.  Raises `StudyError` naming the keys that changed.

    `more` says that episodes will be added; without, `old` stays as it is.  `mixed` allows that they are added with
    other code of this package.
    """
    if old is None:
        return {**new, "sessions": []}
    if "scorers" not in old:
        raise StudyError(f"{folder} cannot be gone on with: an older rlm-loop began it; choose another folder")
    if changed := _changes(old, new):
        shown = ", ".join(changed[:6]) + (f" and {len(changed) - 6} more" if len(changed) > 6 else "")
        judged = all(what.startswith(("truths.", "scorers.")) for what in changed)
        how = "; rescore scores what is recorded with the corrected one" if judged else ""
        raise StudyError(f"{folder} holds another configuration (changed: {shown}); choose another folder{how}")
    if not more:
        return dict(old)
    if not mixed and (other := mixture(old, new)):
        raise StudyError(
            f"{folder} cannot be gone on with: {other}; choose another folder, or allow the mixture (mixed=True, "
            "--mixed), which is noted in study.json"
        )
    return {
        **new,
        **{part: _joined(old[part], new[part]) for part in ("arms", *BY_TASK)},
        "local_models": {**old["local_models"], **new["local_models"]},
        "models": sorted({*old["models"], *new["models"]}),
        "seeds": [*old["seeds"], *(s for s in new["seeds"] if s not in old["seeds"])],
        "sessions": list(old["sessions"]),
    }


def _joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {**old.get(name, {}), **new.get(name, {})} for name in {**old, **new}}


def mark_of(lock: Mapping[str, Any]) -> str:
    """A hash of the part of a lock that makes results of two runs the same study's."""
    arms = {a: {m: entry["digest"] for m, entry in by_model.items()} for a, by_model in lock["arms"].items()}
    inside = [lock["name"], arms, lock["models"], lock["seeds"], lock["tasks"]]
    inside += [lock["truths"], lock["scorers"], lock["local_models"], lock["package"]["code"]]
    return digest(inside)[:16]


def session(started: str, *, local: bool = False) -> dict[str, Any]:
    """Describe when, how and on what kind of machine this process runs a study; no host name and no folder of it.

    With a `local` model also how its library was built.
    """
    command = re.sub(r"(?<!\S)([^\s/]*=)?/\S*/", r"\1", " ".join(sys.argv))[:500]  # of an absolute path its last part
    return {
        "started": started,
        "command": redact(command),
        "package": dict(package()),
        "machine": {
            "cpus": os.cpu_count(),
            "platform": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            **({"llama.cpp": llama_build()} if local else {}),
        },
    }


_HERE = Path(__file__).parents[2]
#: The rooms and modules of the package that run an episode; a change of any other is none of what a study is.
_ENGINE = ("accounting", "agents", "dialects", "meter", "models", "repl", "tasks", "tools", "workspace")
_MODULES = ("actions.py", "messages.py", "outcome.py")


@functools.cache
def package() -> dict[str, str | None]:
    """This package: its version, the commit (`None` where that is not known) and a hash of the code that runs episodes.

    The commit is for people; the hash says whether that code is the same, changes without a commit included.
    """
    code = hashlib.sha256()
    files = [_HERE / name for name in _MODULES] + [file for room in _ENGINE for file in (_HERE / room).rglob("*.py")]
    for file in sorted(files):
        code.update(f"{file.relative_to(_HERE).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return {"version": __version__, "commit": _commit(), "code": code.hexdigest()[:16]}


def _commit() -> str | None:
    try:
        return Git(_HERE.parent / ".git", _HERE.parent, seconds=10)("rev-parse", "HEAD").decode().strip() or None
    except (OSError, WorkspaceError):  # not a clone
        return None


def local_models(agents: Iterable[StudyAgent]) -> dict[str, dict[str, Any]]:
    """By name, the local models of agents: the SHA-256 of the weights (`None`: not here) and the number of slots."""
    every = [model for agent in agents for model in models_of(agent).values()]
    # the client of a provider's model need not be loaded for this
    near = [m for m in every if not isinstance(m, str) or "/" not in m or m.endswith(".gguf")]
    made = {m.name: m for m in map(made_model, near) if isinstance(m, LocalModel)}  # weights are read once for a name
    return {name: {"weights": m.weights_hash, "slots": m.slots} for name, m in made.items()}


def versions_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """By name, the versions of each model that its provider said in the replies; none where it said nothing."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if row.get("model_version"):
            found.setdefault(str(row.get("model_name") or row["model"]), set()).update(row["model_version"].split(", "))
    return {name: sorted(versions) for name, versions in sorted(found.items())}


def require_version(row: Mapping[str, Any], before: Mapping[str, Sequence[str]]) -> None:
    """Raise `StudyError` where the rows of earlier runs (`before`, by `versions_of`) are of another version of a model.

    Versions that a provider mixes within a run are recorded in each row.
    """
    for name, versions in versions_of([row]).items():
        known = before.get(name) or versions
        if other := set(versions) - set(known):
            raise StudyError(
                f"{name} now answers as {', '.join(sorted(other))}, the rows of this folder are of "
                f"{', '.join(known)}: the provider has changed the model; choose another folder"
            )
