"""What must not reach a file: keys, tokens and passwords, by their shape or by the environment's own values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"\b(?:sk|pk|ghp|gho|hf|xox[bp])[-_][A-Za-z0-9_\-]{16,}|(?<=://)[^/\s:@\"\\]+:[^/\s@\"\\]+(?=@)"
)

_SECRET_MARKS = ("sk-", "sk_", "pk-", "pk_", "ghp_", "gho_", "ghp-", "gho-", "hf_", "hf-", "xoxb", "xoxp", "://")


def redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces what looks like a secret: known key shapes, passwords in addresses, and the values
    of environment variables whose name speaks of a key, token, secret or password (8 characters or more)."""
    values = sorted({v for k, v in environ.items() if _SECRET_NAME.search(k) and len(v) >= 8}, key=len, reverse=True)
    escaped = [json.dumps(v)[1:-1] for v in values]

    def redact(text: str) -> str:
        for value in escaped:
            text = text.replace(value, "[redacted]")
        # the pattern is slow on long texts, and its fixed parts are rare
        return _SECRET_SHAPE.sub("[redacted]", text) if any(mark in text for mark in _SECRET_MARKS) else text

    return redact
