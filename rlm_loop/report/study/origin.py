"""Where the numbers come from: every session of the study with its command, machine and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.run.reading import mapping
from rlm_loop.study import Results


@dataclass(frozen=True)
class Origin:
    """The isolation of the model's code, and each session as its start and its facts by name."""

    isolation: Sequence[str]
    sessions: Sequence[tuple[str, Mapping[str, Any]]]


def origin_of(results: Results) -> Origin:
    """The sessions in order; the same for the same study, since the page has no clock of its own."""
    sessions: list[Mapping[str, Any]] = list(results.lock.get("sessions", ()))
    kept = sorted({str(row["isolation"]) for row in results.rows if row.get("isolation")})
    return Origin(kept, [(str(s.get("started", "?"))[:16].replace("T", " "), _facts(s)) for s in sessions])


def _facts(session: Mapping[str, Any]) -> dict[str, Any]:
    machine = mapping(session.get("machine"))
    processors = [f"{machine['cpus']} CPUs"] if machine.get("cpus") else []
    return {
        "command": session.get("command"),
        "machine": ", ".join([*processors, str(machine.get("platform", ""))]),
        "Python": machine.get("python"),
        **{k: v for k, v in machine.items() if k not in ("cpus", "platform", "python")},
        "packages": ", ".join(f"{name} {version}" for name, version in mapping(session.get("packages")).items()),
    }
