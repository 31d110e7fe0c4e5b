"""Start a framework's driver on one job, in the framework's own environment, and read its result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from build import python_of
from contenders import Contender

ROOT = Path(__file__).resolve().parents[2]

#: Telemetry, tracing, price look-ups and downloads of the frameworks, all off.
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_CONFIGURED": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "LOGFIRE_SEND_TO_LOGFIRE": "false",
    "MELLEA_TRACE_APPLICATION": "false",
    "MELLEA_TRACE_BACKEND": "false",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONWARNINGS": "ignore",
}
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


def surroundings(one: Contender, home: Path, key: str) -> dict[str, str]:
    """The environment variables of a driver: no key but the session's own, a home folder that is thrown away."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    paths = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home), "DSPY_CACHEDIR": str(home)}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]) if one.ours else ""
    more = {"PYTHONPATH": path} if path else {}
    return {**kept, **paths, **QUIET, "MSWEA_GLOBAL_CONFIG_DIR": str(home), "OPENAI_API_KEY": key, **more}


def drive(
    one: Contender, job: Mapping[str, Any], cache: Path, folder: Path | None = None, seconds: float = 3600
) -> Any:
    """The driver's result as a dictionary; whatever goes wrong is its `error`.  `folder` is where it works."""
    python = Path(sys.executable) if one.ours else python_of(one, cache)
    with tempfile.TemporaryDirectory(prefix="peer-") as made:
        home, work = Path(made) / "home", folder or Path(made) / "work"
        home.mkdir()
        work.mkdir(exist_ok=True)
        try:
            done = subprocess.run(
                [str(python), str(one.driver)],
                input=json.dumps(dict(job)),
                capture_output=True,
                text=True,
                cwd=work,
                env=surroundings(one, home, str(job["key"])),
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return {"answer": None, "error": f"not finished after {seconds:g} s"}
    return result_of(done.stdout, done.stderr)


def result_of(stdout: str, stderr: str) -> dict[str, Any]:
    """What a driver printed last, or the last line of what it complained about."""
    lines = stdout.strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    said = stderr.strip().splitlines() or ["it printed nothing"]
    return {"answer": None, "error": f"the driver did not finish: {said[-1][:300]}"}
