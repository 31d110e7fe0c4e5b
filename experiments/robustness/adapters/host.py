"""Host one case for another project's interpreter: `host.py PEER CASE REPORT`, run by that project's own Python.

`host.py PEER --probe` prints what the adapter offers as JSON; `--serve` instead forks a host for every case.

What is shared by the adapters is here: which cases apply, and how our `final_answer` is said in another's words.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from experiments.robustness.suite.apart import READY, Report
from experiments.robustness.suite.case import CaseResult, CellCase, Played, ReplyCase, ScriptedReply, Seen
from experiments.robustness.suite.cases import named
from experiments.robustness.suite.forks import SERVE, ordinary_interrupt, serve
from experiments.robustness.suite.runner import not_applicable, run_cells, run_replies
from experiments.robustness.suite.subject import TEXT_ANSWERS, Subject
from experiments.robustness.suite.world import Surroundings

_ASSIGNED = re.compile(r"^([ \t]*)((?:if [^:\n]*: )?)final_answer = (.*)$", re.MULTILINE)
_CALLED = re.compile(r"\bfinal_answer\((.*)\)")

#: In a template for an answer: the expression.
VALUE = "{value}"


def in_their_words(code: str, template: str) -> str:
    """Code with each answer by `final_answer` written as the template says, such as `SUBMIT({value})`."""

    def put(value: str) -> str:
        return template.replace(VALUE, value)

    code = _CALLED.sub(lambda m: put(m[1]), code)

    def assign(m: re.Match[str]) -> str:
        lines = put(m[3]).split("\n")
        return m[1] + m[2] + "; ".join(lines) if m[2] else "\n".join(m[1] + line for line in lines)

    return _ASSIGNED.sub(assign, code)


def timed(run: Callable[[], Seen]) -> Seen:
    """What a cell led to, with the seconds it took; exceptions that are no `Exception` are let through."""
    began = time.monotonic()
    seen = run()
    return replace(seen, seconds=time.monotonic() - began)


class OutOfReplies(Exception):
    """The loop asked for a reply that the script does not have."""


class Script:
    """The replies of a case, in another project's words, and how many were taken."""

    def __init__(self, case: ReplyCase, template: str, fence: str = "```python") -> None:
        texts = [reply.text if isinstance(reply, ScriptedReply) else reply for reply in case.replies]
        self._texts = [in_their_words(text, template).replace("```python", fence) for text in texts]
        self.taken = 0
        self.told: list[str] = []

    def next(self, told: str = "") -> str:
        if self.taken:
            self.told.append(told)
        if self.taken == len(self._texts):
            raise OutOfReplies
        self.taken += 1
        return self._texts[self.taken - 1]

    def played(self, answer: tuple[Any, ...], stop: str) -> Played:
        return Played(answer, stop, self.taken, "\n" + "\n".join(self.told))


def for_any_loop(case: ReplyCase, features: frozenset[str]) -> str:
    """Why a case on replies means nothing for another project's loop over code; empty if it does."""
    if case.needs - features:
        return f"needs: {', '.join(sorted(case.needs - features))}"
    if case.loop != "tool-loop" or case.settings:
        return "it is about a setting of ours"
    if case.stop is not None and case.stop != frozenset(["answered"]):
        return "it is about the reasons for which our loop stops"
    texts = [reply.text if isinstance(reply, ScriptedReply) else reply for reply in case.replies]
    if any(isinstance(a, str) and any(a in text for text in texts) for a in case.answer or ()):
        return "whether a text is an answer is for each project to say"
    if not any("final_answer" in text for text in texts):
        return "no reply answers"
    return ""


def cannot(subject: Subject) -> str:
    """Why the interpreter does not run even the simplest cell here; empty if it does."""
    first = subject.run("print(40 + 2)")
    ok = first.error == "none" and "42" in first.output
    said = re.sub(r"\x1b\[[0-9;]*m", "", first.message or first.output)
    return "" if ok else f"could not be run here: {' '.join(said.split())[:400]}"


def why_not(case: CellCase | ReplyCase, features: frozenset[str], loops: bool) -> str:
    """Why a case is not applicable to a project with these features, and a loop over code or none; empty if it is."""
    if isinstance(case, CellCase):
        return not_applicable(case, features)
    return for_any_loop(case, features) if loops else "it has no loop over code"


def probe(peer: str) -> None:
    """Print what the adapter offers, and why the project's interpreter cannot be run here (empty: it can)."""
    adapter = importlib.import_module(f"{peer}_adapter")
    try:
        subject = adapter.open_subject(Surroundings("", {}))
        try:
            problem = cannot(subject)
        finally:
            subject.close()
        bound = subject.bound
    except Exception as error:
        problem, bound = f"could not be run here: {type(error).__name__}: {' '.join(str(error).split())}"[:400], None
    loops = adapter.play is not None
    print(json.dumps({"problem": problem, "features": sorted(adapter.FEATURES), "loops": loops, "bound": bound}))


def main(peer: str, case_name: str, report_path: str) -> None:
    ordinary_interrupt()
    place, report, case = Surroundings.here(), Report(report_path), named(case_name)
    try:
        adapter = importlib.import_module(f"{peer}_adapter")
        features = adapter.FEATURES
        if reason := why_not(case, features, adapter.play is not None):
            report.verdict(CaseResult(case.name, peer, "n/a", reason))
            return
        if isinstance(case, CellCase):
            subject = adapter.open_subject(place)
            if problem := cannot(subject):
                report.verdict(CaseResult(case.name, peer, "n/a", problem))
                return
            report.note(READY)
            verdict = run_cells(case, subject, place, kind=peer, note=report.note)
            report.note("closing")
            subject.close()
        else:
            report.note(READY)
            verdict = run_replies(case, adapter.play, kind=peer, as_text=TEXT_ANSWERS in features)
        report.verdict(verdict)
    except Exception as error:
        report.failed(f"could not be run: {type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    _peer, _words = sys.argv[1], sys.argv[2:]
    if _words == ["--probe"]:
        probe(_peer)
    elif _words == [SERVE]:
        importlib.import_module(f"{_peer}_adapter")
        main(_peer, *serve())
    else:
        main(_peer, *_words)
