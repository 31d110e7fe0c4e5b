"""Put the robustness cases to our kinds of session and to other projects' interpreters, and write the matrix.

    python experiments/robustness/run.py --kinds plain,rlms,smolagents,dspy_local,mellea
    python experiments/robustness/run.py --report

Each case runs in a process of its own with a hard time limit; each project has an environment of its own, which this
makes with `venv` and pip in the cache folder.  One JSON line a case and kind: a second run goes on where the first
stopped (`--again` runs a kind anew).  Linux only: what is left of processes is seen in /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE / "adapters"), str(ROOT)]

from host import why_not  # noqa: E402
from matrix import report, rows_of  # noqa: E402
from peers import PEERS, command_for, offer_of  # noqa: E402

from experiments.robustness.suite import CASES, CaseResult, CellCase, Forks, ReplyCase, named, run_apart  # noqa: E402
from experiments.robustness.suite.__main__ import host_command, problem  # noqa: E402
from experiments.robustness.suite.kinds import IMAGE, KINDS  # noqa: E402
from experiments.robustness.suite.runner import not_applicable  # noqa: E402
from experiments.robustness.suite.subject import slack  # noqa: E402
from experiments.robustness.suite.world import with_search_path  # noqa: E402

Case = CellCase | ReplyCase

_UNSTOPPED = 5.0
"""Seconds for a cell without end where there is no time limit that could stop it: whatever it does later is red."""

_DECIMALS = 3


@dataclass(frozen=True)
class Contender:
    """A kind of session or a project as the cases are put to it: the command that hosts one, the longest that an
    endless cell may take in seconds (`None`: no limit), and why a case does not apply (empty: it does)."""

    name: str
    command: list[str]
    bound: float | None
    why_not: Callable[[Case], str]

    def hard(self, case: Case) -> float | None:
        """The hard time limit, where it is not the case's own."""
        endless = isinstance(case, CellCase) and any(step.error <= {"stopped", "died"} for step in case.steps)
        return _UNSTOPPED if self.bound is None and endless and "stops" in case.needs else None


def contender(name: str) -> Contender:
    """Get a kind or a project ready.  Raises `RuntimeError` where it cannot be run on this machine."""
    if name in KINDS:
        if name == "container":
            _make_image()
        if reason := problem(name):
            raise RuntimeError(reason)
        features = KINDS[name].features
        return Contender(name, host_command(name), 0.0, lambda case: not_applicable(case, features))
    command = command_for(name)
    offer = offer_of(name, command)
    if offer.problem:
        raise RuntimeError(offer.problem)
    return Contender(name, command, offer.bound, lambda case: why_not(case, offer.features, offer.loops))


def _make_image() -> None:
    """An image of this system's own Python, where podman is there and has none yet: no registry is asked."""
    podman = shutil.which("podman")
    if podman is None or subprocess.run([podman, "image", "exists", IMAGE]).returncode == 0:
        return
    subprocess.run(["sh", str(ROOT / "tests" / "repl" / "python_image.sh"), IMAGE], stdout=subprocess.DEVNULL)


def run(name: str, cases: list[Case], out: Path, jobs: int, again: bool) -> None:
    """Put to one kind what was not yet put to it; a line a case, in the order of the cases once all are there."""
    path = out / f"{name}.jsonl"
    named = {case.name for case in cases}
    kept = [row for row in rows_of(path) if not (again and (row.get("case") in named or len(cases) == len(CASES)))]
    done = {row["case"] for row in kept if "case" in row}
    left = [case for case in cases if case.name not in done]
    if not left:
        return
    about = {"kind": name, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **machine(), "jobs": jobs}
    try:
        ready = contender(name)
    except RuntimeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        path.write_text(_line({**about, "problem": str(error)}), encoding="utf-8")
        return
    lines = [row for row in kept if "problem" not in row]
    path.write_text("".join(_line(row) for row in [*lines, about]), encoding="utf-8")
    began = time.monotonic()
    with path.open("a", encoding="utf-8") as f:
        for number, verdict in enumerate(_verdicts(ready, left, jobs), 1):
            f.write(_line(row_of(verdict)))
            f.flush()
            if verdict.colour != "n/a":
                words = f"{name} {number}/{len(left)} {verdict.colour:5} {verdict.case} {verdict.reason}"
                print(f"{words} ({verdict.seconds:.1f} s)", file=sys.stderr)
    rows = [*rows_of(path), {"kind": name, "cases": len(left), "took": round(time.monotonic() - began)}]
    order = {case.name: number for number, case in enumerate(CASES)}
    rows.sort(key=lambda row: order.get(row.get("case", ""), -1))
    path.write_text("".join(_line(row) for row in rows), encoding="utf-8")


def _verdicts(ready: Contender, cases: list[Case], jobs: int) -> Any:
    """First those that do not apply, then the others as they come."""
    asked: list[Case] = []
    for case in cases:
        if reason := ready.why_not(case):
            yield CaseResult(case.name, ready.name, "n/a", reason)
        else:
            asked.append(case)
    own = threading.local()
    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:

        def judge(case: Case) -> CaseResult:
            if not hasattr(own, "forks"):
                own.forks = stack.enter_context(Forks(ready.command, with_search_path()))
            return run_apart(ready.command, case, kind=ready.name, hard=ready.hard(case), forks=own.forks)

        futures = [pool.submit(judge, case) for case in asked]
        try:
            yield from (future.result() for future in as_completed(futures))
        finally:
            for future in futures:
                future.cancel()


def row_of(verdict: CaseResult) -> dict[str, Any]:
    """A verdict without what is empty."""
    row: dict[str, Any] = {"case": verdict.case, "colour": verdict.colour, "reason": verdict.reason}
    if verdict.colour != "n/a":
        row |= {"seconds": round(verdict.seconds, _DECIMALS), "slowest": round(verdict.slowest, _DECIMALS)}
        row |= {"bound": verdict.bound}
    return {key: value for key, value in row.items() if value not in ("", None)}


def machine() -> dict[str, Any]:
    """What the times depend on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "slack": slack(),
    }


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=True) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", default="plain", help=f"of {', '.join((*KINDS, *PEERS))}; separated by commas")
    parser.add_argument("--cases", default="", help="names of cases, separated by commas; default: all")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (default: 2, for two quiet cores)")
    parser.add_argument("--again", action="store_true", help="forget earlier results of these kinds")
    parser.add_argument("--report", action="store_true", help="write the matrix and the README's table, run nothing")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    unknown = set(kinds) - {*KINDS, *PEERS}
    if unknown:
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        cases = [named(name) for name in options.cases.split(",")] if options.cases else list(CASES)
        for name in kinds:
            run(name, cases, options.out, options.jobs, options.again)
    report(options.out, [*KINDS, *PEERS], HERE / "README.md" if options.out == HERE / "results" else None)


if __name__ == "__main__":
    main()
