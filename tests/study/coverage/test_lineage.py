"""From answers back to ranges, and why episodes failed."""

from __future__ import annotations

import pytest
from made_traces import Told

from rlm_loop.actions import Answer, CallTool, Failure, FinalAnswer, Observation, RunCode
from rlm_loop.study.coverage import Coverage, Diagnosis, Lineage, coverage_of, diagnose, lineage_of
from rlm_loop.traces.reader import RunRecord

FILLER = [f"paragraph {i:04d} tells of {i * 7919 % 10007:05d} other things" for i in range(1000)]
NEEDLES = {200: "The secret code of Oslo is 482913", 700: "The secret code of Ghent is 771205"}
TEXT = "\n".join(NEEDLES.get(i, line) for i, line in enumerate(FILLER)) + "\n"
OSLO, GHENT = ((at := TEXT.index(line), at + len(line)) for line in NEEDLES.values())


def around(needle: tuple[int, int], width: int = 400) -> str:
    return TEXT[needle[0] - width : needle[1] + width]


def lineage(run: Told, answer: object = None, *, stop: str = "answered") -> tuple[Lineage, Coverage, RunRecord]:
    record = run.end(answer, stop)
    coverage = coverage_of(TEXT, record)
    return lineage_of(record, coverage), coverage, record


def sources(found: Lineage) -> list[str]:
    return [s.code.source for s in found.steps]


def test_back_through_variables_and_cells() -> None:
    run = Told(context=TEXT)
    run.turn("lines = context.splitlines()\nunused = 5")
    run.turn("count = 0\nfor line in lines: count += 'code' in line\nother = count")
    run.turn("count = len(lines)\nfinal_answer = count", answer=2)
    found, _, _ = lineage(run, 2)
    assert found.how == "computed"
    assert sources(found) == ["final_answer = count", "count = len(lines)", "lines = context.splitlines()"]
    assert found.code_ranges is None
    assert found.reads_context
    frame = found.frame()
    assert set(frame.kind) == {"answer", "variable", "range"}
    assert ("0 turn 1 cell 1 line 1", "0 turn 3 cell 1 line 1", "lines") in [
        (r.source, r.target, r.detail) for r in frame.itertuples()
    ]


def test_changes_in_place_are_followed() -> None:
    run = Told(context=TEXT)
    run.turn(
        "found = []\nfor line in context.splitlines(): found.append(line)\nfound.sort()\nseen = {}\nseen['a'] = found"
    )
    run.turn("final_answer = seen", answer="x")
    found, _, _ = lineage(run, "x")
    assert len(found.steps) == 6


def test_through_sub_calls_to_ranges() -> None:
    run = Told(context=TEXT)
    run.turn("parts = [context[:20000], context[20000:]]")
    run.turn("def ask(p):\n    return llm_query('find: ' + p)\nsaid = [ask(p) for p in parts]")
    for i, part in enumerate((TEXT[:20000], TEXT[20000:])):
        run.child("find: " + part, "482913" if not i else "no", turn=2)
    run.turn("noise = llm_query('hello')")
    run.child("hello", "hi", turn=3)
    run.turn("final_answer = said[0]", answer="482913")
    found, coverage, _ = lineage(run, "482913")
    assert found.calls == ("0.1", "0.2")
    assert found.ranges == ((0, len(TEXT)),)
    assert found.code_ranges == ((0, len(TEXT)),)
    text = found.text()
    assert "call 0.1: completion, saw 20,000 characters" in text
    assert "0.3" not in text
    assert coverage.share == 1


def test_a_printed_result_that_the_model_repeats_was_computed() -> None:
    run = Told(context=TEXT)
    run.turn("import re\nn = len(re.findall('code', context))")
    run.turn("print('found', n)", "found 17")
    run.says("There are 17.")
    run.turn(Answer("17"), Observation(answer=FinalAnswer("17")))
    found, _, _ = lineage(run, "17")
    assert found.how == "computed"
    assert sources(found) == ["print('found', n)", "n = len(re.findall('code', context))", "import re"]


def test_an_answer_copied_from_shown_text() -> None:
    run = Told(context=TEXT)
    run.turn("i = context.find('Oslo')\nprint(context[i - 400 : i + 400])", around(OSLO))
    run.turn("final_answer = '482913'", answer="482913")
    found, _, _ = lineage(run, "482913")
    assert found.how == "copied"
    assert [TEXT[a:b] for a, b in found.ranges] == ["482913"]
    assert "copied" in found.text()


@pytest.mark.parametrize(
    ("answer", "how"),
    [(Answer("999"), "said"), (CallTool("final_answer", '{"answer": "999"}'), "said")],
)
def test_an_answer_out_of_nowhere(answer: Answer | CallTool, how: str) -> None:
    run = Told(context=TEXT)
    run.turn("print(context[:80])", TEXT[:80])
    run.turn(answer, Observation(answer=FinalAnswer("999")))
    found, _, _ = lineage(run, "999")
    assert (found.how, found.ranges, found.steps) == (how, (), ())


def test_code_in_calls_of_the_python_tool() -> None:
    run = Told(context=TEXT)
    run.turn(
        CallTool("python", '{"code": "n = context.count(\'x\')\\nprint(n)"}'), Observation("31", cause="repl_output")
    )
    run.turn(CallTool("final_answer", '{"answer": 31}'), Observation(answer=FinalAnswer(31, "object")))
    found, _, _ = lineage(run, 31)
    assert (found.how, sources(found)) == ("computed", ["print(n)", "n = context.count('x')"])


def test_skipped_cells_are_not_followed_and_failed_ones_may_not_have_bound() -> None:
    run = Told(context=TEXT)
    run.turn("n = 1")
    run.turn("n = context.count('a')\n1/0", Observation("ZeroDivisionError", Failure("runtime", "1/0")))
    run.turn(RunCode("n = 7"), Observation("", Failure("skipped", "not run")))
    run.turn("final_answer = n", answer=1)
    found, _, _ = lineage(run, 1)
    assert sources(found) == ["final_answer = n", "n = context.count('a')", "n = 1"]


def test_no_answer_at_all() -> None:
    run = Told(context=TEXT)
    run.turn("x = 1")
    found, _, _ = lineage(run, stop="steps")
    assert (found.how, str(found)) == ("none", "answer of 0: no answer\n└─ nothing of the context")


def test_the_lineage_of_a_sub_agent() -> None:
    run = Told(context=TEXT)
    agent = run.start(kind="agent")
    run.turn("final_answer = context.count('z')", node=agent, answer=3)
    record = run.end()
    found = lineage_of(record, coverage_of(TEXT, record), node=agent)
    assert (found.node, found.how) == ("0.1", "computed")


# -- why it failed


def looked_at(*texts: str) -> Told:
    run = Told(context=TEXT)
    run.turn("print(...)", "\n---\n".join(texts))
    return run


def never_looked() -> Told:
    run = looked_at(TEXT[:500])
    run.turn("final_answer = '123456'", answer="123456")
    return run


def read_one_of_two() -> Told:
    run = looked_at(around(OSLO))
    run.says("I think it is 482913.")
    return run


def misread() -> Told:
    run = looked_at(around(OSLO), around(GHENT))
    run.turn("final_answer = ['482913', '771206']", answer=["482913", "771206"])
    return run


def misread_in_a_sub_call() -> Told:
    run = Told(context=TEXT)
    run.turn("final_answer = [llm_query(context[i:i + 20000]) for i in (0, 20000)]", answer=["1", "2"])
    # turn 1 asked; its number is what the trace says of the children
    for part in (TEXT[:25000], TEXT[25000:]):
        run.child(part, "1", turn=1)
    return run


def computed() -> Told:
    run = Told(context=TEXT)
    run.turn("n = context.count('secret')")
    run.turn("final_answer = n", answer=3)
    return run


def computed_on_the_head() -> Told:
    run = Told(context=TEXT)
    run.turn("final_answer = context[:500].count('secret')", answer=0)
    return run


def printed_numbers_only() -> Told:
    run = Told(context=TEXT)
    run.turn("import re\nprint(re.findall(r'is (\\d+)', context))", "['482913', '771205']")
    run.turn("final_answer = '482913 and 771206'", answer="482913 and 771206")
    return run


@pytest.mark.parametrize(
    ("run", "reason", "seen"),
    [
        (never_looked, "never_looked", 0),
        (read_one_of_two, "looked_in_part", 1),
        (misread, "misread", 2),
        (misread_in_a_sub_call, "misread", 2),
        (computed, "computed_wrongly", 0),
        (computed_on_the_head, "never_looked", 0),
        (printed_numbers_only, "misread", 2),
    ],
)
def test_why_it_failed(run: object, reason: str, seen: int) -> None:
    record = run().end("?")  # pyright: ignore[reportCallIssue]
    found = diagnose(record, coverage_of(TEXT, record), [OSLO, GHENT], resolved=False)
    assert (found.reason, found.seen) == (reason, seen)
    assert str(found).startswith(f"{reason}: ")
    assert found.row()["needles"] == 2


def test_a_right_answer_and_a_missing_one() -> None:
    record = misread().end("?", "steps")
    coverage = coverage_of(TEXT, record)
    assert diagnose(record, coverage, [OSLO], resolved=True).reason == "resolved"
    found: Diagnosis = diagnose(record, coverage, [OSLO], resolved=False)
    assert (found.reason, found.depths) == ("no_answer", (0,))


@pytest.mark.parametrize("needles", [[], [(5, 5)], [(0, len(TEXT) + 1)]])
def test_needles_have_to_be_ranges(needles: list[tuple[int, int]]) -> None:
    record = misread().end("?")
    with pytest.raises(ValueError, match=r"names none|no range"):
        diagnose(record, coverage_of(TEXT, record), needles, resolved=False)
