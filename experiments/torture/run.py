"""Put the torture cases to our kinds of session and to other projects' interpreters, and write the matrix.

    python experiments/torture/run.py --kinds plain,rlms,smolagents,dspy,mellea --out experiments/torture/results
    python experiments/torture/run.py --report --out experiments/torture/results

Each case runs in a process of its own with a hard time limit; each project has an environment of its own, which this
makes with `venv` and pip in the cache folder.  One JSON line a case and kind: a second run goes on where the first
stopped (`--again` runs a kind anew).  Linux only: what is left of processes is seen in /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from rlm_loop.torture import CASES, CellCase, ReplyCase, Verdict, named, run_apart
from rlm_loop.torture.__main__ import host_command
from rlm_loop.torture.kinds import KINDS
from rlm_loop.torture.subject import slack

HERE = Path(__file__).resolve().parent

#: What is installed for each of the others.
PEERS = {
    "rlms": ["rlms==0.1.3"],
    "smolagents": ["smolagents==1.26.0"],
    "dspy": ["dspy==3.4.1", "deno==2.9.8"],
    "dspy_local": ["dspy==3.4.1", "deno==2.9.8"],
    "mellea": ["mellea==0.8.0"],
}


def command_for(name: str) -> list[str]:
    """The command that hosts a case for a kind; raises `RuntimeError` where a project cannot be installed."""
    if name in KINDS:
        return host_command(name)
    return [str(environment(name) / "bin" / "python"), str(HERE / "adapters" / "host.py"), name]


def environment(name: str) -> Path:
    """The project's environment, made where it is missing."""
    folder = user_cache_path("rlm-loop") / "torture" / name.partition("_")[0]
    ready = folder / "installed.txt"
    wanted = "\n".join(PEERS[name])
    if ready.exists() and ready.read_text() == wanted:
        return folder
    print(f"installing {' '.join(PEERS[name])} into {folder} ...", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    done = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEERS[name]],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise RuntimeError(f"could not be installed: {last}")
    ready.write_text(wanted)
    return folder


def problem_of(name: str) -> str:
    """Why a kind cannot be run here at all; empty if it can."""
    try:
        command = command_for(name)
        if name in KINDS:
            return ""
        path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [*command, "--probe"],
                capture_output=True,
                text=True,
                timeout=180 * slack(),
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
            )
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        return lines[-1] if lines else ""
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return str(error)


def run(kinds: list[str], cases: list[CellCase | ReplyCase], out: Path, hard: float, again: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in kinds:
        path = out / f"{name}.jsonl"
        if again:
            path.unlink(missing_ok=True)
        done = {row["case"] for row in rows_of(path)}
        left = [case for case in cases if case.name not in done]
        if not left:
            continue
        problem = problem_of(name)
        command = [] if problem else command_for(name)
        for number, case in enumerate(left, 1):
            if problem:
                verdict = Verdict(case.name, name, "n/a", problem)
            else:
                verdict = run_apart(command, case, kind=name, hard=hard)
            gap = KINDS[name].gaps.get(case.name, "") if name in KINDS and verdict.colour == "red" else ""
            row = {
                **asdict(verdict),
                "theme": case.theme,
                "gap": gap,
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            with path.open("a", encoding="utf-8") as f:
                f.write(json.dumps(row) + "\n")
            print(f"{name} {number}/{len(left)} {verdict.colour:5} {case.name} {verdict.reason}", file=sys.stderr)


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # torn by a stop in the middle of a line: that case is run again
    return rows


def report(out: Path) -> str:
    """The matrix as Markdown: a summary by theme, then every case."""
    found = {path.stem: {row["case"]: row for row in rows_of(path)} for path in sorted(out.glob("*.jsonl"))}
    order = [name for name in (*KINDS, *PEERS) if name in found]
    themes = list(dict.fromkeys(case.theme for case in CASES))
    lines = ["# Torture matrix", "", "Green of those that apply (red, of these known gaps).", ""]
    lines += [f"| theme | cases | {' | '.join(order)} |", f"|---|---:|{'---|' * len(order)}"]
    for theme in [*themes, "all"]:
        names = [case.name for case in CASES if theme in (case.theme, "all")]
        cells = [_summary([found[k][n] for n in names if n in found[k]]) for k in order]
        lines.append(f"| {theme} | {len(names)} | {' | '.join(cells)} |")
    lines += [
        "",
        "## Every case",
        "",
        f"| case | what it does | {' | '.join(order)} |",
        f"|---|---|{'---|' * len(order)}",
    ]
    for case in CASES:
        marks = [_mark(found[k].get(case.name)) for k in order]
        if any(marks):
            lines.append(f"| `{case.name}` | {_cell(case.does)} | {' | '.join(marks)} |")
    lines += ["", "## Why a case is red", ""]
    for k in order:
        lines += [f"### {k}", ""]
        for case in CASES:
            row = found[k].get(case.name)
            if row and row["colour"] == "red":
                gap = " (known gap)" if row["gap"] else ""
                lines.append(f"- `{case.name}`{gap}: {_cell(row['reason'])}")
        lines.append("")
    return "\n".join(lines)


def _summary(rows: list[dict[str, Any]]) -> str:
    count = Counter(row["colour"] for row in rows)
    gaps = sum(bool(row["gap"]) for row in rows)
    if not rows:
        return ""
    applicable = count["green"] + count["red"]
    if not applicable:
        return "n/a"
    red = f" ({count['red']} red" + (f", {gaps} known gaps)" if gaps else ")") if count["red"] else ""
    return f"{count['green']} of {applicable}{red}"


def _mark(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return "red: gap" if row["gap"] else str(row["colour"])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kinds", default="plain", help=f"of {', '.join((*KINDS, *PEERS))}; separated by commas")
    parser.add_argument("--cases", default="", help="names of cases, separated by commas; default: all")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--hard", type=float, default=10.0, help="seconds after which a case is killed")
    parser.add_argument("--again", action="store_true", help="forget earlier results of these kinds")
    parser.add_argument("--report", action="store_true", help="print the matrix and write it to matrix.md, run nothing")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    unknown = set(kinds) - {*KINDS, *PEERS}
    if unknown:
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    if not options.report:
        cases = [named(name) for name in options.cases.split(",")] if options.cases else list(CASES)
        run(kinds, cases, options.out, options.hard, options.again)
    text = report(options.out)
    (options.out / "matrix.md").write_text(text + "\n", encoding="utf-8")
    if options.report:
        print(text)


if __name__ == "__main__":
    main()
