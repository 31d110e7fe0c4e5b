"""Put all robustness cases to one kind of session or one project, in this Python, and write its column of the results.

    python tests/robustness/run.py rlms [--cases while-true,tcp] [--jobs 2]

`make robustness` does so for each project in an environment of its own.  Linux only.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.csv"
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parents[1])])

from suite.cases import CASES  # noqa: E402
from suite.hosts import preload, run_apart  # noqa: E402
from suite.kinds import named  # noqa: E402


def rows() -> dict[str, dict[str, str]]:
    with RESULTS.open(encoding="utf-8", newline="") as f:
        return {row["case"]: row for row in csv.DictReader(f)}


def table() -> str:
    """Return the Markdown table of green cases among those that apply, by theme."""
    found, order = rows(), {case.name: case.theme for case in CASES}
    kinds = [name for name in next(iter(found.values())) if name != "case"]
    lines = [["theme", "cases", *kinds], ["---", *["---:"] * (len(kinds) + 1)]]
    for theme in [*dict.fromkeys(order.values()), "all"]:
        own = [row for name, row in found.items() if theme in ("all", order.get(name))]
        counts = [Counter(row[kind] for row in own) for kind in kinds]
        cells = [f"{c['green']}/{c['green'] + c['red']}" if c["green"] + c["red"] else "n/a" for c in counts]
        lines.append([theme, str(len(own)), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", nargs="?", help="a kind of session, or an adapter; none: print the table")
    parser.add_argument("--cases", default="", help="names, separated by commas (default: all, and write the column)")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    options = parser.parse_args()
    if options.kind is None:
        print(table())
        return
    kind, names = named(options.kind), options.cases.split(",") if options.cases else []
    subject = kind.open()
    first = subject.run("print(40 + 2)")
    subject.close()
    if "42" not in first.output:
        parser.error(f"{kind.name} cannot be run here: {first.message or first.output}")
    preload(kind.name)
    cases = [case for case in CASES if not names or case.name in names]
    found = rows()
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            verdicts = pool.map(lambda case: run_apart(kind, case), cases)
            for case, verdict in zip(cases, verdicts, strict=True):
                found.setdefault(case.name, {"case": case.name})[kind.name] = verdict.colour
                if verdict.colour == "red" or names:
                    print(f"{verdict.colour:5} {case.name}: {verdict.reason}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    if not names:
        kinds = list(dict.fromkeys(name for row in found.values() for name in row))
        with RESULTS.open("w", encoding="utf-8", newline="") as f:
            writer = csv.DictWriter(f, kinds, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(found[case.name] for case in CASES)


if __name__ == "__main__":
    main()
