"""A page that holds all that it needs: its style, its one script, and a policy that lets nothing else load or run."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from string import Template


def resource(name: str, package: str = "rlm_loop.report.run") -> str:
    """A file that lies beside the modules of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def sealed(template: str, *, style: str, script: str, **parts: str) -> str:
    """The template filled in: `$policy`, `$style`, `$script` and `parts`, which are HTML already.

    The policy names style and script by their hashes, so that no text of a model, a tool or a task can act on the page.
    """
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(template).substitute(policy=policy, style=style, script=script, **parts)


def _digest(text: str) -> str:
    """The hash by which a content security policy lets this very text run, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
