"""Templates escape whatever they are given, keep what is HTML already, and leave out their own line breaks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from rlm_loop.report.templates import escaped, macros


@given(st.text())
def test_any_value_is_text_in_a_template(text: str) -> None:
    made = macros("run/parts.html").small(text)
    assert isinstance(made, Markup)
    inner = made.removeprefix('<p class="small">').removesuffix("</p>")
    assert not re.search(r"[<>\"'\x00-\x08\u202a-\u202e\u2066-\u2069]", inner)
    assert escaped(made) is made


@pytest.mark.parametrize(
    "name", ["run/parts.html", "study/sections.html", "notebook/views.html", "notebook/style.html"]
)
def test_every_template_is_whole(name: str) -> None:
    assert [value for value in vars(macros(name)).values() if callable(value)]


def test_what_is_html_already_stays_and_line_breaks_of_a_template_are_left_out() -> None:
    parts = macros("run/parts.html")
    made = parts.block(parts.called("<tool>"), "one\ntwo", "code")
    assert made == '<div class="block code"><p class="label">Call of <b>&lt;tool&gt;</b></p><pre>one\ntwo</pre></div>'
