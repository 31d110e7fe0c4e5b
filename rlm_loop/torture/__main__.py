"""`python -m rlm_loop.torture`: list the cases, or put them to a kind of session, each in a process of its own."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

from rlm_loop.torture.apart import READY, Report, run_apart
from rlm_loop.torture.case import CellCase, Verdict
from rlm_loop.torture.cases import CASES, named
from rlm_loop.torture.kinds import KINDS, kind
from rlm_loop.torture.runner import not_applicable, run_cells, run_replies
from rlm_loop.torture.subject import slack
from rlm_loop.torture.world import Place

_CLOSING = 2.5  # seconds that closing a session may take, whatever a cell left in it


def host_command(name: str) -> list[str]:
    """The command for `run_apart` that hosts a kind of session of ours."""
    return [sys.executable, "-m", "rlm_loop.torture", "--host", name]


def host(name: str, case_name: str, report_path: str) -> None:
    """Run one case here, and report; what `host_command` starts."""
    place, report, case = Place.here(), Report(report_path), named(case_name)
    opened = kind(name)
    try:
        if reason := not_applicable(case, opened.features):
            report.verdict(Verdict(case.name, name, "n/a", reason))
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
            from rlm_loop.torture.play import play

            report.note(READY)
            verdict = run_replies(case, lambda c: play(c, opened.session), kind=name)
        report.verdict(verdict)
    except Exception as error:
        report.failed(f"{type(error).__name__}: {error}")
        raise


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rlm_loop.torture", description=__doc__)
    parser.add_argument(
        "kind", nargs="?", help=f"a kind of session ({', '.join(KINDS)}); without one, the cases are listed"
    )
    parser.add_argument("cases", nargs="*", help="names of cases; default: all")
    parser.add_argument("--host", nargs=3, metavar=("KIND", "CASE", "REPORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        host(*options.host)
        return 0
    if options.kind is None:
        for case in CASES:
            print(f"{case.theme}: {case.name}: {case.does}; {case.must}")
        return 0
    bad = 0
    for case in [named(name) for name in options.cases] or CASES:
        verdict = run_apart(host_command(options.kind), case, kind=options.kind)
        gap = kind(options.kind).gaps.get(case.name, "") if verdict.colour == "red" else ""
        bad += verdict.colour == "red" and not gap
        print(f"{verdict.colour:5} {case.name}: {verdict.reason}" + (f" [known gap: {gap}]" if gap else ""), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
