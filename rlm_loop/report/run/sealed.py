"""A page that holds all that it needs: its style, its one script, and a policy that lets nothing else load or run."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from rlm_loop.report.templates import render
from rlm_loop.traces.versions import __version__


def sealed(template: str, *parts: str, colours: str = "", connect: bool = False, **values: Any) -> str:
    """A template that extends `page.html`, filled in with `values`, the version, the policy, a style and a script.

    `parts` are style sheets and scripts beside those of all pages, as paths in `report`; `colours` are further rules of
    style.  The policy names style and script by their hashes, so that no text of a model, a tool or a task can act on
    the page.  With `connect` the script may ask the server that the page came from, and no other.
    """
    style = _joined(".css", "run/page.css", *parts) + colours
    script = _joined(".js", "run/shared.js", *parts)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    policy += "; connect-src 'self'" if connect else ""
    made = {"policy": Markup(policy), "style": Markup(style), "script": Markup(script), "version": __version__}
    return render(template, **made, **values)


def _joined(ending: str, *parts: str) -> str:
    here = files("rlm_loop.report")
    return "".join(here.joinpath(name).read_text(encoding="utf-8") for name in parts if name.endswith(ending))


def _digest(text: str) -> str:
    """The hash by which a content security policy lets this very text run, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
