"""Where the numbers come from: every session of the study with its command, machine and versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_loop.report.study.parts import note
from rlm_loop.report.templates import safe
from rlm_loop.study import Results


def origin(results: Results) -> str:
    """One block a session, the same for the same study: the page has no clock of its own."""
    sessions: list[Mapping[str, Any]] = list(results.lock.get("sessions", ()))
    kept = sorted({str(row["isolation"]) for row in results.rows if row.get("isolation")})
    where = f"<p>Code of the model ran in: {safe(', '.join(kept))}.</p>" if kept else ""
    if not sessions:
        return where + note("No session was recorded, so machine and versions are not known.")
    return where + "".join(_session(session) for session in sessions)


def _session(session: Mapping[str, Any]) -> str:
    machine = _mapping(session.get("machine"))
    rest = {k: v for k, v in machine.items() if k not in ("cpus", "platform", "python")}
    facts = {
        "command": session.get("command"),
        "machine": ", ".join(
            [*([f"{machine['cpus']} CPUs"] if machine.get("cpus") else []), str(machine.get("platform", ""))]
        ),
        "Python": machine.get("python"),
        **rest,
        "packages": ", ".join(f"{name} {version}" for name, version in _mapping(session.get("packages")).items()),
    }
    items = "".join(
        f"<dt>{safe(name)}</dt><dd>{f'<code>{safe(value)}</code>' if name == 'command' else safe(value)}</dd>"
        for name, value in facts.items()
        if value
    )
    started = str(session.get("started", "?"))[:16].replace("T", " ")
    return f'<h3>Session of {safe(started)} UTC</h3><dl class="session">{items}</dl>'


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
