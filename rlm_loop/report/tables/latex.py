"""A table as LaTeX: text that LaTeX shows as it is, between the rules of booktabs, no wider than the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

#: A table that is wider than the text is made as wide as that.
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
#: What LaTeX reads as a command, and signs that a plain pdflatex does not know.  Of letters it knows the Latin ones.
_SHOWN = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "−": r"$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "\u00a0": "~",
    "\n": " ",
}


def escaped(text: str) -> str:
    """Text as LaTeX shows it, on one line.  Control characters, which end a run of LaTeX, are spaces.

    Hyphens stay apart (`--jobs`), since LaTeX makes one dash of two.
    """
    shown = "".join(_SHOWN.get(letter, " " if unicodedata.category(letter) == "Cc" else letter) for letter in text)
    return re.sub("-(?=-)", "-{}", shown)


def latex_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str], labels: int, label: str
) -> str:
    """A `table` float; the first `labels` columns are left, the others right."""
    sides = "".join("l" if i < labels else "r" for i in range(len(columns)))
    head = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{escaped(title)}}}"]
    head += [rf"\label{{{label}}}"] if label else []
    said = "\\\\ {}".join(escaped(note) for note in notes)
    below = [r"\par\smallskip", rf"{{\footnotesize\raggedright {said}\par}}"] if notes else []
    body = [r"\toprule", _line(columns), r"\midrule", *(_line(row) for row in rows), r"\bottomrule"]
    tabular = [_FITTED, rf"\begin{{tabular}}{{{sides}}}", *body, r"\end{tabular}}"]
    lines = [*head, *tabular, *below, r"\end{table}"]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    """A row.  After a rule or a row LaTeX reads `[` and `*` as its argument, so a row that begins so is shielded."""
    text = " & ".join(escaped(cell) for cell in cells)
    return f"{'{}' if text.lstrip()[:1] in ('[', '*') else ''}{text} \\\\"
