"""The hook that sends a run's spans while it goes on: the same spans that the trace gives afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.formats.traces import conversation_of
from rlm_loop.formats.traces.otel import OpenTelemetryHook, spans_of
from rlm_loop.models import ScriptedModel
from rlm_loop.traces.reader import read, records_of
from rlm_loop.traces.trace import Trace
from tests.formats.otlp_receiver import receiver

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
pytest.importorskip("opentelemetry.sdk")

ASKS = "```python\npart = llm_query('How many?')\nprint(part)\n```"
ANSWERS = "```python\nfinal_answer = part\n```"


def agent(*hooks: object, replies: Sequence[Any] = (ASKS, "seven", ANSWERS)) -> ToolLoopAgent:
    return ToolLoopAgent(model=ScriptedModel(replies, name="scripted"), max_depth=1, repl="subprocess", hooks=hooks)


class Watching:
    """Notes after each step which spans were sent."""

    def __init__(self, hook: OpenTelemetryHook, exporter: Any) -> None:
        self.hook, self.exporter = hook, exporter
        self.seen: list[list[str]] = []

    def on_step_end(self) -> None:
        self.hook.flush()
        self.seen.append([span.name for span in self.exporter.get_finished_spans()])


@pytest.fixture
def exporter() -> Any:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


def test_spans_are_sent_as_they_end_and_are_those_of_the_trace(exporter: Any, tmp_path: Path) -> None:
    hook = OpenTelemetryHook(exporter=exporter, every=0)
    watching = Watching(hook, exporter)
    outcome = agent(hook, watching).run("How many are there?", trace=tmp_path / "run.jsonl")
    assert outcome.answer == "seven"
    names = ["chat scripted", "llm_query", "chat scripted", "execute_tool python"]
    assert sorted(watching.seen[0]) == sorted(names)
    sent = exporter.get_finished_spans()
    whole = {span.id: span for span in spans_of(conversation_of(read(tmp_path / "run.jsonl")))}
    assert sorted(f"{span.context.span_id:016x}" for span in sent) == sorted(whole)
    for span in sent:
        after = whole[f"{span.context.span_id:016x}"]
        parent = None if span.parent is None else f"{span.parent.span_id:016x}"
        assert (span.name, parent, dict(span.attributes)) == (after.name, after.parent, after.attributes)
        assert f"{span.context.trace_id:032x}" == after.trace
    hook.close()


def test_reading_takes_a_tenth_of_the_time_at_most(exporter: Any) -> None:
    times = iter([0.0, 2.0, 20.9, 21.1, 21.2])  # a reading of 2 s; then 1 s and nine times as long as it are waited for
    hook = OpenTelemetryHook(exporter=exporter, every=1.0, clock=lambda: next(times))
    watching = Watching(hook, exporter)
    cells = ["```python\nn = 1\n```", "```python\nn = 2\n```", "```python\nfinal_answer = n\n```"]
    agent(hook, watching, replies=cells).run("How many?")
    assert [len(names) for names in watching.seen] == [2, 2, 6]
    hook.close()


def test_a_run_without_a_file_is_sent_as_well_and_two_runs_are_two_traces(exporter: Any) -> None:
    hook = OpenTelemetryHook(exporter=exporter, content=False)
    for _ in range(2):
        agent(hook).run("How many?")
    trace = Trace()
    agent(hook).run("How many?", trace=trace)
    [record] = records_of(trace.events)
    sent = exporter.get_finished_spans()
    assert len({span.context.trace_id for span in sent}) == 3
    mine = [span for span in sent if f"{span.context.trace_id:032x}" == spans_of(conversation_of(record))[0].trace]
    assert len(mine) == len(spans_of(conversation_of(record)))
    assert not [name for span in sent for name in span.attributes if name.endswith((".messages", "input.value"))]
    hook.close()


def test_a_run_is_part_of_the_span_that_the_caller_has_open(exporter: Any) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    hook = OpenTelemetryHook(exporter=exporter)
    with TracerProvider().get_tracer("caller").start_as_current_span("request") as outer:
        agent(hook).run("How many?")
    sent = exporter.get_finished_spans()
    assert {span.context.trace_id for span in sent} == {outer.get_span_context().trace_id}
    [root] = [span for span in sent if span.name == "invoke_agent code"]
    assert root.parent.span_id == outer.get_span_context().span_id
    hook.close()


def test_a_run_that_fails_is_sent_with_its_error(exporter: Any) -> None:
    from opentelemetry.trace import StatusCode

    hook = OpenTelemetryHook(exporter=exporter)
    with pytest.raises(RuntimeError):
        agent(hook, replies=[ASKS, "seven", RuntimeError("the provider is down")]).run("How many?")
    by_name = {span.name: span for span in exporter.get_finished_spans()}  # of each name the latest
    for name in ("invoke_agent code", "chat scripted"):
        assert by_name[name].status.status_code is StatusCode.ERROR
        assert "the provider is down" in by_name[name].status.description
    hook.close()


def test_an_endpoint_is_told_and_one_that_refuses_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    for status in (200, 400):
        with receiver(status) as received:
            hook = OpenTelemetryHook(received.address)
            outcome = LeanAgent(model=ScriptedModel(["It is 4."]), hooks=[hook]).run("What is 2 + 2?")
            hook.close()
        assert outcome.answer == "It is 4."
        assert {span.name for span in received.spans} >= {"invoke_agent calls"}
    assert "Failed to export" in caplog.text


def test_an_address_or_an_exporter(exporter: Any) -> None:
    for arguments in ({}, {"address": "http://127.0.0.1:1", "exporter": exporter}):
        with pytest.raises(ValueError, match="an address or an exporter"):
            OpenTelemetryHook(**arguments)
