"""Pages made of the HTML templates of this room, in which jinja2 escapes every value."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from rlm_loop.versions import __version__

# Control characters that would be lost or steer the page, lone surrogates (no UTF-8), and marks that turn the
# direction of writing: code that reads otherwise than it runs must not look innocent.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def safe(value: Any) -> str:
    """Any value as HTML text or the value of an attribute in quotes."""
    return escape(_HIDDEN.sub(_named, str(value).replace("\r\n", "\n")))


def escaped(value: Any) -> Markup:
    """The same for templates: `Markup` is HTML already, and stays as it is."""
    return value if isinstance(value, Markup) else Markup(safe(value))


@cache
def macros(name: str) -> Any:
    """The macros of a template, as functions that return `Markup`; `name` is its path in this room."""
    return _environment().get_template(name).module


class _OneLine(Extension):
    """Line breaks and indentation of a template are for its reader: what is made of it holds neither."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"\s*\n\s*", "", source)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("rlm_loop.report", ""),
        extensions=[_OneLine],
        autoescape=True,
        finalize=escaped,
        undefined=StrictUndefined,
        auto_reload=False,
    )


def _named(found: re.Match[str]) -> str:
    return f"‹U+{ord(found[0]):04X}›" if _TURNING.match(found[0]) else "\N{REPLACEMENT CHARACTER}"


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
    return _environment().get_template(template).render(made | values)


def _joined(ending: str, *parts: str) -> str:
    here = files("rlm_loop.report")
    return "".join(here.joinpath(name).read_text(encoding="utf-8") for name in parts if name.endswith(ending))


def _digest(text: str) -> str:
    """The hash by which a content security policy lets this very text run, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
