"""A run in plain characters: for terminals, logs, and front ends that show no HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlm_loop.accounting.amounts import counted
from rlm_loop.report.notebook.run_html import by_cause_title
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome

#: Control characters but tab and newline, and those that change the order in which others are shown.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Text without secrets that cannot steer the terminal, see `harmless`."""
    return harmless(redact(text))


def harmless(text: str) -> str:
    """Text that steers no terminal: control characters but tab and newline, and bidirectional ones, are visible."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def closing_line(outcome: Outcome) -> str:
    """Why the run ended and what it cost, in one line."""
    reason = f" ({redact(outcome.reason)})" if outcome.reason else ""
    turns = f"{outcome.steps} turn{'' if outcome.steps == 1 else 's'}"
    return f"{outcome.stop}{reason}: {turns}, {counted(outcome.usage)}, {outcome.seconds:.1f} s"


def causes_line(by_cause: Mapping[str, int], counting: str) -> str:
    """Input tokens by cause in one line, the most first; empty where there are none."""
    if not sum(by_cause.values()):
        return ""
    parts = [f"{cause} {tokens:,}" for cause, tokens in sorted(by_cause.items(), key=lambda item: -item[1])]
    return visible(f"{by_cause_title(counting)}: {', '.join(parts)}")
