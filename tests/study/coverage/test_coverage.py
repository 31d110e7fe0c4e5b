"""What was seen of a context, by whom and how often, read from traces of call trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import Told

from rlm_loop.actions import Observation, RunCode
from rlm_loop.messages import Prompt, say
from rlm_loop.repl.contexts.context import describe_context
from rlm_loop.study.coverage import Coverage, CoverageError, coverage_of

TEXT = "".join(f"record {i:04d} holds the value {i * 7919 % 10007:05d} for its owner\n" for i in range(1000))
LINE = TEXT.index("\n") + 1


def lines(a: int, b: int) -> str:
    return TEXT[a * LINE : b * LINE]


def told(context: object = TEXT) -> Told:
    return Told(context=context)


def spans(coverage: Coverage, channel: str | None = None) -> list[tuple[str, str, int, int, int]]:
    """Node, channel, first and last line, times."""
    return [
        (s.node, s.channel, round(s.start / LINE), round(s.end / LINE), s.times)
        for s in coverage.spans
        if channel in (None, s.channel)
    ]


def test_printed_text_is_seen_when_a_call_follows() -> None:
    run = told()
    run.turn("print(context[:660])", lines(0, 10))
    run.turn("print(context[:330])", lines(0, 5) + "\nand something else of its own")
    run.turn("print(context[6600:]); final_answer = 1", lines(500, 510), answer=1)
    coverage = coverage_of(TEXT, run.end(1))
    assert spans(coverage) == [("0", "printed", 0, 5, 2), ("0", "printed", 5, 10, 1)]
    assert coverage.seen(0, 10 * LINE) == 1
    assert coverage.seen(500 * LINE, 510 * LINE) == 0  # printed by the cell that answered: no model read it
    assert coverage.share == pytest.approx(10 / 1000)


def test_prompts_contexts_and_answers_have_channels_of_their_own() -> None:
    run = told()
    run.child(f"Summarise this:\n{lines(100, 200)}", "a summary in my own words")
    agent = run.start(kind="agent", context=lines(200, 400))
    run.turn("print(context[:100])", lines(200, 202), node=agent, brief=describe_context(lines(200, 400)))
    run.turn("final_answer = x", node=agent, answer=lines(300, 301))
    run.trace.record("run_end", depth=1, node=agent, stop="answered", answer=lines(300, 301))
    run.stop(agent)
    run.turn("final_answer = a", answer=lines(7, 8))
    coverage = coverage_of(TEXT, run.end([lines(7, 8).strip()]))
    assert spans(coverage, "prompt")[0] == ("0.1", "prompt", 100, 200, 1)
    assert ("0.2", "child_context", 200, 400, 1) in spans(coverage)
    assert ("0.2", "printed", 200, 202, 1) in spans(coverage)
    assert ("0.2", "answer", 300, 301, 1) in spans(coverage)
    assert ("0", "answer", 7, 8, 1) in spans(coverage)
    assert coverage.seen(100 * LINE, 202 * LINE) == 1
    assert coverage.seen(203 * LINE, 400 * LINE) == 0  # handed over in a variable: no model saw it
    assert coverage.ranges(channels=["child_context"]) == [(200 * LINE, 400 * LINE)]
    assert coverage.ranges(depth=0) == []
    assert coverage.depths == [0, 1]


def test_a_batch_that_maps_over_the_context() -> None:
    run = told()
    run.turn("parts = llm_query_batched(chunks)", "done")
    run.batch([f"Count: {lines(i * 50, i * 50 + 50)}" for i in range(20)], ["3"] * 20)
    run.turn("final_answer = 60", answer=60)
    coverage = coverage_of(TEXT, run.end(60))
    assert coverage.share == 1.0
    assert coverage.line(10) == "█" * 10
    assert coverage.gaps() == []
    assert len(spans(coverage, "prompt")) == 20


def test_the_frame_and_the_strip() -> None:
    run = told()
    run.turn("print(context)", lines(250, 500))
    run.turn("x", "")
    coverage = coverage_of(TEXT, run.end())
    frame = coverage.frame()
    assert list(frame.columns) == ["node", "depth", "channel", "start", "end", "times"]
    assert frame.to_dict("records") == [
        {"node": "0", "depth": 0, "channel": "printed", "start": 250 * LINE, "end": 500 * LINE, "times": 1}
    ]
    assert coverage.line(8) == "··██····"
    assert len(coverage.line()) == 80
    assert coverage.line(1) == "▂"
    assert coverage.gaps() == [(0, 250 * LINE), (500 * LINE, len(TEXT))]
    assert str(coverage) == repr(coverage)
    assert str(coverage).endswith("25.0% of 48,000 characters seen")


@pytest.mark.parametrize(
    "printed",
    [
        repr(lines(10, 20)),  # the last expression of a cell
        repr(lines(10, 20).splitlines()),
        lines(10, 20).replace("\n", "\n\n"),
        "\n".join(f"{i}: {line}" for i, line in enumerate(lines(10, 20).splitlines())),
        "('key', " + repr(lines(10, 20)) + ")",
    ],
)
def test_forms_in_which_text_is_printed(printed: str) -> None:
    run = told()
    run.turn("context", printed)
    run.turn("x", "")
    coverage = coverage_of(TEXT, run.end())
    assert coverage.seen(10 * LINE, 20 * LINE) > 0.97
    assert coverage.seen(20 * LINE, 1000 * LINE) == 0


def test_short_records_in_a_printed_list() -> None:
    text = "".join(f"{i},ok,{i * 31 % 97}\n" for i in range(1000, 2000))
    run = told(text)
    run.turn("rows[:3]", repr(text.splitlines()[500:503]))
    run.turn("x", "")
    start = text.index("1500,ok")
    assert coverage_of(text, run.end()).ranges() == [(start, text.index("1503,ok") - 1)]


def test_the_brief_of_the_root_is_a_prompt() -> None:
    """A direct strategy has the context in its only prompt; others a preview of it."""
    run = told()
    run.call("0", Prompt((say("system", lines(900, 910), "system"), say("user", lines(0, 300), "task"))), turn=1)
    assert spans(coverage_of(TEXT, run.end())) == [("0", "prompt", 0, 300, 1)]


def test_a_cached_answer_saw_its_prompt_too() -> None:
    run = told()
    prompt = f"Summarise: {lines(30, 40)}"
    run.child(prompt, "short")
    sha = run.trace.text(prompt) if hasattr(run.trace, "text") else "s"
    if not hasattr(run.trace, "text"):
        run.trace.record("text", sha256="s", text=prompt)
    run.start(kind="cached", prompt_sha256=sha)
    run.start(kind="denied", prompt_sha256=sha)
    assert [s[0] for s in spans(coverage_of(TEXT, run.end()))] == ["0.1", "0.2"]


def test_a_context_that_is_no_slice_is_said_to_be_missing_or_handed_in() -> None:
    mixed = lines(5, 10) + lines(700, 705)
    run = told()
    agent = run.start(kind="agent", context=mixed)
    run.turn("x", "", node=agent, brief=describe_context(mixed))
    coverage = coverage_of(TEXT, run.end())
    assert coverage.unplaced == ("0.1",)
    assert "0.1" in str(coverage)
    coverage = coverage_of(TEXT, run.record, contexts={"0.1": mixed})
    assert coverage.unplaced == ()
    assert coverage.ranges(channels=["child_context"]) == [(5 * LINE, 10 * LINE), (700 * LINE, 705 * LINE)]


def test_slices_of_text_beyond_ascii() -> None:
    text = "".join(f"Zeile {i:04d} mit Umlauten äöü und dem Wert {i * 7919 % 10007}\n" for i in range(300))
    part = text[3000:6000]
    run = told(text)
    agent = run.start(kind="agent", context=part)
    run.turn("x", "", node=agent, brief=describe_context(part))
    coverage = coverage_of(text, run.end())
    assert coverage.ranges(channels=["child_context"]) == [(3000, 6000)]


@pytest.mark.parametrize(
    ("context", "start", "end"),
    [
        (TEXT.encode(), 0, 10 * LINE),
        (TEXT.splitlines(), 0, 10 * LINE),
        (tuple(TEXT.splitlines()), 0, 10 * LINE),
        (dict(enumerate(TEXT.splitlines())), 0, 10 * LINE),
    ],
)
def test_other_kinds_of_context(context: object, start: int, end: int) -> None:
    run = told(context)
    run.turn("print(...)", lines(0, 10))
    run.turn("x", "")
    assert coverage_of(context, run.end()).ranges() == [(start, end)] or isinstance(context, bytes)
    assert coverage_of(context, run.record).seen(start, end) == 1


def test_a_file_as_the_context(tmp_path: Path) -> None:
    run = told()
    run.turn("print(...)", lines(0, 10))
    run.turn("x", "")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8", newline="")
    assert coverage_of(tmp_path / "text.txt", run.end()).share == 0.01


@pytest.mark.parametrize(
    ("given", "context", "message"),
    [
        (TEXT, TEXT + "x", "this is not the context of the run: its trace says str of 48,000 bytes"),
        (None, TEXT, "this run had no context"),
        (7, 7, "the context is a int: hand in text="),
    ],
)
def test_what_cannot_be_covered(given: object, context: object, message: str) -> None:
    record = told(given).end()
    with pytest.raises(CoverageError, match=message):
        coverage_of(context, record)


def test_an_empty_context() -> None:
    coverage = coverage_of("", told("").end())
    assert (coverage.share, coverage.spans, coverage.gaps()) == (0.0, (), [])
    assert coverage.line(5) == "·····"
    with pytest.raises(ValueError, match="no range"):
        coverage.seen(0, 1)


def test_observations_of_tools_count_as_printed() -> None:
    run = told()
    run.turn(RunCode("read()"), Observation(lines(1, 3), cause="tool_result"))
    run.turn("x", "")
    assert spans(coverage_of(TEXT, run.end())) == [("0", "printed", 1, 3, 1)]
