"""Tables for a paper: what LaTeX would read as a command is shown as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.report import Table, arm_table, suite_table, target_table
from rlm_loop.report.tables.latex import escaped
from rlm_loop.study import load_study

RECORDED = Path(__file__).parents[2] / "experiments" / "headline" / "results"
#: Every sign of ASCII, Latin letters with accents, and the signs of tables, captions and notes; but for those that
#: LaTeX has only with its font encoding T1.
SIGNS = "".join(chr(n) for n in (*range(32, 127), *range(161, 256)) if chr(n) not in "«»ÐÞðþ\N{SOFT HYPHEN}")
SIGNS += "œŁőž€–—…“”‘’−≤≥≈→"


def test_the_whole_table() -> None:
    table = Table("Arms & costs", ["arm", "rate"], [["lean_v2", "40% [20-60]"], ["[b]", "−1"]], ["5 × 4", "[x]"])
    assert table.to_latex(label="tab:arms") == (
        "\\begin{table}[htbp]\n\\centering\n\\caption{Arms \\& costs}\n\\label{tab:arms}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        "\\begin{tabular}{lr}\n\\toprule\narm & rate \\\\\n\\midrule\n"
        "lean\\_v2 & 40\\% [20-60] \\\\\n{}[b] & $-$1 \\\\\n\\bottomrule\n\\end{tabular}}\n"
        "\\par\\smallskip\n{\\footnotesize\\raggedright 5 $\\times$ 4\\\\ {}[x]\\par}\n\\end{table}\n"
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
        ("a\tb\x1bc", "a b c"),
        ("study run --jobs 8 ---", "study run -{}-jobs 8 -{}-{}-"),
        ("1–2", "1\\textendash{}2"),
    ],
)
def test_what_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_no_command_and_no_open_brace_is_left(text: str) -> None:
    rest = re.sub(r"\\[&%$#_{}]|\\text[a-z]+\{\}|(?<=-)\{\}(?=-)", "", escaped(text))
    assert not set(rest) & set('\\&%$#_{}~^<>|"')
    assert "--" not in escaped(text)


def test_chosen_columns() -> None:
    table = Table("T", ["arm", "model", "n", "rate", "cost"], [["lean", "m", "5", "40%", "1"]], labels=2)
    chosen = table.to_latex(columns=["cost", "n"])
    assert "\\begin{tabular}{llrr}" in chosen
    assert "lean & m & 1 & 5 \\\\" in chosen
    with pytest.raises(ValueError, match="no column 'luck'; there are arm, model, n, rate, cost"):
        table.to_latex(columns=["luck"])


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX: apt-get install texlive-latex-recommended")
def test_a_plain_pdflatex_takes_it(tmp_path: Path) -> None:
    """Recorded tables and odd signs: without an error, an unknown letter, or a line that is too wide."""
    found = load_study(RECORDED)
    tables = [table(found, "react-text") for table in (arm_table, suite_table, target_table)]
    rows = [[SIGNS[i : i + 24], SIGNS[i : i + 5]] for i in range(0, len(SIGNS), 24)]
    odd = Table("100 % & _ # ~ ^ \\ { } $", ["[a]", "*"], [["[b]", "*"], ["*", ""], *rows], ["100 % [x]", "[y]", "*"])
    body = "\n".join(table.to_latex(label=f"tab:{n}") for n, table in enumerate([*tables, odd]))
    text = (
        f"\\documentclass{{article}}\n\\usepackage{{booktabs,graphicx}}\n\\begin{{document}}\n{body}\\end{{document}}\n"
    )
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    argv = ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "t.log").read_text(errors="replace")
    assert not re.findall(r"Overfull .hbox.*|Missing character.*|LaTeX Warning: (?!There were|Label).*", log)
