"""`python experiments/robustness/suite`: list the cases, or run them on a kind of session, each in its own process."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":  # started by its folder, which Python then searches instead of the one that holds the suite
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from experiments.robustness.suite.apart import READY, Report, run_apart
from experiments.robustness.suite.case import CaseResult, CellCase
from experiments.robustness.suite.cases import CASES, named
from experiments.robustness.suite.forks import Forks, ordinary_interrupt, serve
from experiments.robustness.suite.kinds import KINDS, kind
from experiments.robustness.suite.play import play
from experiments.robustness.suite.runner import not_applicable, run_cells, run_replies
from experiments.robustness.suite.subject import slack
from experiments.robustness.suite.world import Surroundings

_CLOSING = 2.5  # seconds that closing a session may take, whatever a cell left in it


def host_command(name: str) -> list[str]:
    """The command for `run_apart` that hosts a kind of session of ours."""
    return [sys.executable, str(Path(__file__).parent), "--host", name]


def problem(name: str) -> str:
    """Why a kind of session of ours cannot be had on this machine; empty if it can."""
    try:
        subject = kind(name).open()
        try:
            first = subject.run("print(6 * 7)")
        finally:
            subject.close()
    except Exception as error:
        return f"cannot be run here: {error}"
    return "" if first.output.strip() == "42" else f"cannot be run here: {first.message or first.output}"


def host(name: str, case_name: str, report_path: str) -> None:
    """Run one case here, and report; what `host_command` starts."""
    ordinary_interrupt()
    place, report, case = Surroundings.here(), Report(report_path), named(case_name)
    opened = kind(name)
    try:
        if reason := not_applicable(case, opened.features):
            report.verdict(CaseResult(case.name, name, "n/a", reason))
            return
        if isinstance(case, CellCase):
            subject = opened.open(**case.options)
            subject.run("1")
            report.note(READY)
            verdict = run_cells(case, subject, place, kind=name, note=report.note)
            report.note("closing")
            before = time.monotonic()
            subject.close()
            closing = time.monotonic() - before
            if verdict.colour == "green" and closing > _CLOSING * slack():
                verdict = replace(verdict, colour="red", reason=f"closing took {closing:.1f} s")
        else:
            report.note(READY)
            verdict = run_replies(case, lambda c: play(c, opened.session), kind=name)
        report.verdict(verdict)
    except Exception as error:
        report.failed(f"{type(error).__name__}: {error}")
        raise


def main() -> int:
    parser = argparse.ArgumentParser(prog="python experiments/robustness/suite", description=__doc__)
    parser.add_argument(
        "kind", nargs="?", help=f"a kind of session ({', '.join(KINDS)}); without one, the cases are listed"
    )
    parser.add_argument("cases", nargs="*", help="names of cases; default: all")
    parser.add_argument("--host", nargs="+", metavar="KIND [CASE REPORT]", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        host(options.host[0], *(serve() if options.serve else options.host[1:]))
        return 0
    if options.kind is None:
        for case in CASES:
            print(f"{case.theme}: {case.name}: {case.does}; {case.must}")
        return 0
    if reason := problem(options.kind):
        parser.error(f"{options.kind} {reason}")
    with Forks(host_command(options.kind)) as forks:
        return run_all(options.kind, options.cases, forks)


def run_all(name: str, cases: list[str], forks: Forks) -> int:
    """Put cases (default: all) to a kind, print the verdicts; 1 if one is red that is no known gap, else 0."""
    bad = 0
    for case in [named(case) for case in cases] or CASES:
        verdict = run_apart(host_command(name), case, kind=name, forks=forks)
        gap = kind(name).gaps.get(case.name, "") if verdict.colour == "red" else ""
        bad += verdict.colour == "red" and not gap
        print(f"{verdict.colour:5} {case.name}: {verdict.reason}" + (f" [known gap: {gap}]" if gap else ""), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
