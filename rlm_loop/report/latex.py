"""A table as LaTeX: text that LaTeX shows as it is, between the rules of booktabs."""

from __future__ import annotations

from collections.abc import Sequence

#: What LaTeX reads as a command, and letters that a plain pdflatex does not know.
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
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "\u00a0": "~",
    "\n": " ",
}


def escaped(text: str) -> str:
    """Text as LaTeX shows it, on one line."""
    return "".join(_SHOWN.get(letter, letter) for letter in text)


def latex_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str], labels: int, label: str
) -> str:
    """A `table` float; the first `labels` columns are left, the others right."""
    sides = "".join("l" if i < labels else "r" for i in range(len(columns)))
    head = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{escaped(title)}}}"]
    head += [rf"\label{{{label}}}"] if label else []
    said = "\\\\ {}".join(escaped(note) for note in notes)
    below = [r"\par\smallskip", rf"{{\footnotesize {said}\par}}"] if notes else []
    body = [r"\toprule", _line(columns), r"\midrule", *(_line(row) for row in rows), r"\bottomrule"]
    lines = [*head, rf"\begin{{tabular}}{{{sides}}}", *body, r"\end{tabular}", *below, r"\end{table}"]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    """A row.  After a rule or a row LaTeX reads `[` and `*` as its argument, so a row that begins so is shielded."""
    text = " & ".join(escaped(cell) for cell in cells)
    return f"{'{}' if text.lstrip()[:1] in ('[', '*') else ''}{text} \\\\"
