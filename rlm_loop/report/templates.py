"""The HTML templates of this room: files beside the code that fills them, in which jinja2 escapes every value."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

# Control characters that would be lost or steer the page, lone surrogates (no UTF-8), and marks that turn the
# direction of writing: code that reads otherwise than it runs must not look innocent.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def safe(value: Any) -> str:
    """Any value as HTML text or the value of an attribute in quotes."""
    text = str(value).replace("\r\n", "\n")
    if _HIDDEN.search(text):
        text = _HIDDEN.sub(_named, text)
    return escape(text)


def escaped(value: Any) -> Markup:
    """The same for templates: `Markup` is HTML already, and stays as it is."""
    return value if isinstance(value, Markup) else Markup(safe(value))


@cache
def macros(name: str) -> Any:
    """The macros of a template, as functions that return `Markup`; `name` is its path in this room."""
    return _environment().get_template(name).module


def render(template: str, **values: Any) -> str:
    """A template filled in."""
    return _environment().get_template(template).render(values)


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
