"""A simulated prompt cache against rules that can be worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.prompt_cache import RULES, Rules, simulate
from rlm_loop.agents.metered import Metered
from rlm_loop.messages import Message, Prompt, Reply, Span, say
from rlm_loop.models import ScriptedModel
from rlm_loop.traces.reader import RunRecord
from rlm_loop.traces.trace import Trace

EVERY = Rules("every token")
TOOL = {"type": "function", "function": {"name": "f"}}


def played(prompts: Iterable[Prompt], *, seconds: float = 1.0, apart: bool = False) -> RunRecord:
    """A run of these requests, so many seconds between two events; `apart`: each by a caller of its own."""
    said = list(prompts)
    now = iter(range(10_000))
    trace = Trace(clock=lambda: next(now) * seconds)
    trace.start(question="q")
    model = ScriptedModel([Reply("a reply of words") for _ in said], name="m")
    metered = Metered(model, Account(Budget()), Ledger(), trace, Caller())
    for turn, prompt in enumerate(said, 1):
        caller = metered.scoped(Caller(metered.node, turn), purpose="llm_query") if apart else metered
        caller.complete(prompt, turn=turn)
    return RunRecord(tuple(trace.events))


BRIEF = Prompt((say("system", "s" * 400, "system"), say("user", "t" * 40, "task")))  # 4 + 100, 4 + 10, and 3 that ask
REPLY, SHOWN = say("assistant", "a reply of words", "assistant", turn=1), say("user", "o" * 80, "repl_output", turn=1)
GROWN = Prompt((*BRIEF.messages, REPLY, SHOWN))


def hits(record: RunRecord, rules: Rules) -> list[int]:
    return [read.hit for read in simulate(record, rules).reads]


def test_a_prompt_that_only_grows_is_read_up_to_its_end() -> None:
    record = played([BRIEF, GROWN])
    report = simulate(record, EVERY)
    assert [(r.tokens, r.hit) for r in report.reads] == [(121, 0), (121 + 8 + 24, 118 + 4)]  # the marker of the reply
    assert (report.breaks, report.broken_by()) == ((), {})
    assert hits(record, replace(EVERY, keeps_replies=True)) == [0, 118 + 8]
    assert hits(record, replace(EVERY, whole_messages=True)) == [0, 118]
    assert hits(record, replace(EVERY, block=50)) == [0, 100]
    assert hits(record, replace(EVERY, minimum=122)) == [0, 122]
    assert hits(record, replace(EVERY, minimum=123)) == [0, 0]
    assert [r.written for r in report.reads] == [121, 153 - 122]


def test_the_same_request_again_is_read_whole_but_for_what_is_always_new() -> None:
    record = played([BRIEF, BRIEF])
    assert hits(record, EVERY) == [0, 121]
    assert hits(record, replace(EVERY, anew=1)) == [0, 120]


def test_a_prefix_is_forgotten_and_each_use_renews_it() -> None:
    record = played([BRIEF, BRIEF, BRIEF], seconds=100.0)
    asked = [e["at"] for e in record.of("request")]
    steps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert hits(record, replace(EVERY, seconds=max(steps))) == [0, 121, 121]  # longer ago than that, but used since
    assert hits(record, replace(EVERY, seconds=min(steps) - 1)) == [0, 0, 0]


def test_callers_share_a_cache_unless_each_has_its_own() -> None:
    record = played([BRIEF, BRIEF], apart=True)
    assert hits(record, EVERY) == [0, 121]
    assert hits(record, replace(EVERY, shared=False)) == [0, 0]


def test_an_injector_that_changes_an_early_text_breaks_the_cache_and_is_named() -> None:
    def turn(number: int) -> Prompt:
        head = Message("system", (Span("s" * 400, "system"), Span(f" turn {number}", "scaffold:turn_counter")))
        return Prompt((head, *GROWN.messages[1:]))

    report = simulate(played([turn(1), turn(2)]), EVERY)
    [found] = report.breaks
    assert (found.call, found.message, found.cause, found.why) == (2, 0, "scaffold:turn_counter", "changed")
    assert list(report.broken_by()) == ["scaffold:turn_counter"]
    assert 100 <= report.reads[1].hit <= 106
    assert found.lost == report.reads[0].tokens - report.reads[1].hit


def test_messages_left_out_and_tools_that_change_break_it_too() -> None:
    shorter = Prompt((*BRIEF.messages, GROWN.messages[3]))
    [left_out] = simulate(played([GROWN, shorter]), EVERY).breaks
    assert (left_out.why, left_out.cause, left_out.message) == ("left_out", "assistant", 2)
    [tools] = simulate(played([GROWN, replace(GROWN, tools=(TOOL,))]), EVERY).breaks
    assert (tools.cause, tools.message) == ("tool_schema", -1)


def test_the_rules_of_providers_have_references_and_a_wrong_name_is_refused() -> None:
    long = Prompt((say("system", "s" * 8000, "system"), say("user", "t", "task")))
    record = played([long, long])
    assert hits(record, RULES["openai"])[1] == 2008 // 128 * 128
    assert hits(record, RULES["anthropic"])[1] == 2012
    assert all(rules.source for rules in RULES.values())
    assert list(simulate(record, "openai").frame()["hit"]) == [0, 1920]
    assert "1,920 of 4,024 prompt tokens from the cache (48%)" in str(simulate(record, "openai"))
    with pytest.raises(ValueError, match=r"use openai, anthropic, llama\.cpp"):
        simulate(record, "openia")
