"""A page that holds all that it needs: its style, its one script, and a policy that lets nothing else load or run."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from rlm_loop.report.templates import render


def resource(name: str, package: str = "rlm_loop.report.run") -> str:
    """A file that lies beside the modules of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def sealed(template: str, *, style: str, script: str, connect: bool = False, **values: Any) -> str:
    """A template (its path in `report`) filled in with `policy`, `style`, `script` and `values`.

    The policy names style and script by their hashes, so that no text of a model, a tool or a task can act on the page.
    With `connect` the script may ask the server that the page came from, and no other.
    """
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    policy += "; connect-src 'self'" if connect else ""
    return render(template, policy=Markup(policy), style=Markup(style), script=Markup(script), **values)


def _digest(text: str) -> str:
    """The hash by which a content security policy lets this very text run, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
