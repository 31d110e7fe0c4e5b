"""Tables for a paper: what LaTeX would read as a command is shown as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.report import Table
from rlm_loop.report.latex import escaped


def test_the_whole_table() -> None:
    table = Table("Arms & costs", ["arm", "rate"], [["lean_v2", "40% [20-60]"], ["[b]", "−1"]], ["5 × 4", "[x]"])
    assert table.to_latex(label="tab:arms") == (
        "\\begin{table}[htbp]\n\\centering\n\\caption{Arms \\& costs}\n\\label{tab:arms}\n"
        "\\begin{tabular}{lr}\n\\toprule\narm & rate \\\\\n\\midrule\n"
        "lean\\_v2 & 40\\% [20-60] \\\\\n{}[b] & $-$1 \\\\\n\\bottomrule\n\\end{tabular}\n"
        "\\par\\smallskip\n{\\footnotesize 5 $\\times$ 4\\\\ {}[x]\\par}\n\\end{table}\n"
    )
    assert "\\label" not in table.to_latex()
    assert "footnotesize" not in Table("T", ["a"], [["1"]]).to_latex()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\\b", "a\\textbackslash{}b"),
        ("x_1^2~", "x\\_1\\textasciicircum{}2\\textasciitilde{}"),
        ("{$5}", "\\{\\$5\\}"),
        ("p < 0.01 ≤ p|q", "p \\textless{} 0.01 $\\leq$ p\\textbar{}q"),
        ("two\nlines", "two lines"),
    ],
)
def test_what_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_no_command_and_no_open_brace_is_left(text: str) -> None:
    rest = re.sub(r"\\[&%$#_{}]|\\text[a-z]+\{\}", "", escaped(text))
    assert not set(rest) & set('\\&%$#_{}~^<>|"')
