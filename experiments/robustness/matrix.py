"""The matrix as Markdown, from the JSON lines of all kinds: `results/matrix.md`, and a short table in the README."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.robustness.suite import CASES, KINDS
from rlm_loop.report.tables.readme import write_between

Rows = dict[str, dict[str, Any]]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results; one torn by a stop in its middle is left out, and that case is run again."""
    rows: list[dict[str, Any]] = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def report(out: Path, order: list[str], readme: Path | None) -> None:
    """Write `matrix.md`, and the table in the README where one is given."""
    found: dict[str, Rows] = {}
    problems: dict[str, str] = {}
    for name in order:
        lines = rows_of(out / f"{name}.jsonl")
        if problem := next((line["problem"] for line in lines if "problem" in line), ""):
            problems[name] = problem
        if lines:
            gaps = KINDS[name].gaps if name in KINDS else {}
            found[name] = {line["case"]: _with_gap(line, gaps) for line in lines if "case" in line}
    table = "\n".join(_table(found, problems))
    text = [
        "# Robustness matrix",
        "",
        table,
        "",
        *_every_case(found),
        *_reasons(found),
    ]
    (out / "matrix.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print(table)
    if readme is not None:
        write_between(readme, "table", table)


def _with_gap(row: dict[str, Any], gaps: Mapping[str, str]) -> dict[str, Any]:
    gap = gaps.get(row["case"]) if row["colour"] == "red" else None
    return {**{key: value for key, value in row.items() if key != "gap"}, **({"gap": gap} if gap else {})}


def _table(found: dict[str, Rows], problems: dict[str, str]) -> list[str]:
    themes = list(dict.fromkeys(case.theme for case in CASES))
    lines = ["Green cases of those that apply.", ""]
    lines += [f"| theme | cases | {' | '.join(found)} |", f"|---|---:|{'---:|' * len(found)}"]
    for theme in [*themes, "all"]:
        names = [case.name for case in CASES if theme in (case.theme, "all")]
        cells = ["n/a" if k in problems else _summary(found[k], names) for k in found]
        lines.append(f"| {theme} | {len(names)} | {' | '.join(cells)} |")
    gaps = [str(sum("gap" in row for row in rows.values())) for rows in found.values()]
    reds = [str(sum(row["colour"] == "red" and "gap" not in row for row in rows.values())) for rows in found.values()]
    lines.append(f"| red: known gaps | | {' | '.join(gaps)} |")
    lines.append(f"| red: others | | {' | '.join(reds)} |")
    missing = {k: len(CASES) - len(rows) for k, rows in found.items() if len(rows) < len(CASES) and k not in problems}
    lines += ["", *(f"`{k}` {problem}." for k, problem in problems.items())]
    lines += [f"`{k}`: {number} cases have not been run." for k, number in missing.items()]
    return [*lines, *_known_gaps(found)]


def _summary(rows: Rows, names: list[str]) -> str:
    count = Counter(rows[name]["colour"] for name in names if name in rows)
    applicable = count["green"] + count["red"]
    return f"{count['green']}/{applicable}" if applicable else "n/a" if count else ""


def _known_gaps(found: dict[str, Rows]) -> list[str]:
    lines: list[str] = []
    for kind, rows in found.items():
        by_reason: dict[str, list[str]] = {}
        for case in CASES:
            row = rows.get(case.name, {})
            if row.get("colour") == "red" and "gap" in row:
                by_reason.setdefault(row["gap"], []).append(f"`{case.name}`")
        lines += [f"- {kind}: {reason}: {', '.join(names)}." for reason, names in by_reason.items()]
    return ["", "Known gaps:", "", *lines] if lines else []


def _every_case(found: dict[str, Rows]) -> list[str]:
    lines = ["## Every case", ""]
    lines += [f"| case | what it does | {' | '.join(found)} |", f"|---|---|{'---|' * len(found)}"]
    for case in CASES:
        marks = [_mark(rows.get(case.name)) for rows in found.values()]
        if any(marks):
            lines.append(f"| `{case.name}` | {_cell(case.does)} | {' | '.join(marks)} |")
    return [*lines, ""]


def _reasons(found: dict[str, Rows]) -> list[str]:
    lines = ["## Why a case is red", ""]
    for kind, rows in found.items():
        red = [(c.name, rows[c.name]) for c in CASES if rows.get(c.name, {}).get("colour") == "red"]
        lines += [f"### {kind}", "", *(["Nothing is red.", ""] if rows and not red else [])]
        lines += [f"- `{name}`{' (known gap)' if 'gap' in row else ''}: {_cell(row['reason'])}" for name, row in red]
        lines += [""] if red else []
    return lines


def _mark(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return "red: gap" if "gap" in row else str(row["colour"])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")
