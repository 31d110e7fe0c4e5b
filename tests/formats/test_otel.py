"""Runs as spans of OpenTelemetry: read by opentelemetry-proto, from a file and at an endpoint, by known names only."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upstream import Answer, Upstream, upstream

from rlm_loop.cli.main import main
from rlm_loop.formats import conversation_of, export_study, export_trace, spans_of
from rlm_loop.messages import Usage
from rlm_loop.outcome import Score
from rlm_loop.study import load_study
from rlm_loop.traces import read

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
pytest.importorskip("opentelemetry.sdk")

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.jsonl"))
SUB_AGENTS = ROOT / "tests/golden/tool_loop_sub_agents.jsonl"
each_golden = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
TAKEN = Answer.of("", Connection="close")


def received(server: Upstream) -> list[Any]:
    """The requests that came to an endpoint, as opentelemetry-proto reads them."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    packed = [(got.body, got.header("Content-Encoding") == "gzip") for got in server.got]
    return [ExportTraceServiceRequest.FromString(gzip.decompress(body) if zipped else body) for body, zipped in packed]


def parsed(path: Path) -> Any:
    """A file of one run as opentelemetry-proto reads it."""
    [one] = lines_in(path)
    return one


def lines_in(path: Path) -> list[Any]:
    """Lines of OTLP's JSON as opentelemetry-proto reads them; ids are hexadecimal, which protobuf does not know."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def mended(read: dict[str, Any]) -> dict[str, Any]:
        for name in {"traceId", "spanId", "parentSpanId"} & set(read):
            read[name] = base64.b64encode(bytes.fromhex(read[name])).decode()
        return read

    lines = path.read_text(encoding="utf-8").splitlines()
    return [ParseDict(json.loads(line, object_hook=mended), ExportTraceServiceRequest()) for line in lines]


def spans_in(request: Any) -> list[Any]:
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def attributes(span: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in span.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_value(item) for item in found.values] if kind == "array_value" else found


def exported(what: Any, folder: Path) -> list[Any]:
    """The spans of a run as opentelemetry-proto reads them from a file."""
    out = folder / "run.otlp.jsonl"
    export_trace(what, "otel", out)
    return spans_in(parsed(out))


@each_golden
def test_a_golden_run_is_read_by_opentelemetry_itself(path: Path, tmp_path: Path) -> None:
    conversation = conversation_of(read(path), Score(True, 1.0, "right"))
    spans = exported(conversation, tmp_path)
    ids = {span.span_id for span in spans}
    assert (len(ids), len({span.trace_id for span in spans})) == (len(spans), 1)
    [root] = [span for span in spans if not span.parent_span_id]
    assert all(span.parent_span_id in ids for span in spans if span is not root)
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano for span in spans)
    chats = [span for span in spans if attributes(span).get("gen_ai.operation.name") == "chat"]
    assert len(chats) == len(conversation.calls)
    used = sum((call.reply.usage for call in conversation.calls if call.reply and call.reply.usage), Usage.NOTHING)
    names = [f"gen_ai.usage.{kind}_tokens" for kind in ("input", "output", "cache_read.input")]
    billed = [used.input_tokens or 0, used.output_tokens or 0, used.cache_read_tokens or 0]
    assert [sum(attributes(span).get(name, 0) for span in spans) for name in names] == billed
    for found in map(attributes, chats):
        causes = [tokens for name, tokens in found.items() if name.startswith("rlm_loop.tokens.")]
        assert sum(causes) == found.get("gen_ai.usage.input_tokens", 0)
    assert [event.name for event in root.events] == ["gen_ai.evaluation.result"]


def test_messages_are_those_of_the_request(tmp_path: Path) -> None:
    trace = ROOT / "tests/golden/lean_native.jsonl"
    calls = conversation_of(read(trace)).calls
    spans = map(attributes, exported(trace, tmp_path))
    chats = [found for found in spans if found["gen_ai.operation.name"] == "chat"]
    for call, found in zip(calls, chats, strict=True):
        assert call.reply is not None
        told = json.loads(found["gen_ai.input.messages"])
        for message, theirs in zip(call.prompt.messages, told, strict=True):
            text = "".join(part.get("content") or part.get("response") or "" for part in theirs["parts"])
            names = [part["name"] for part in theirs["parts"] if part["type"] == "tool_call"]
            expected = (message.role, message.text, [one.name for one in message.tool_calls])
            assert (theirs["role"], text, names) == expected
        [said] = json.loads(found["gen_ai.output.messages"])
        assert found["gen_ai.response.finish_reasons"] == [call.reply.finish_reason]
        assert said["finish_reason"] == {"tool_calls": "tool_call"}.get(call.reply.finish_reason, "stop")
        assert len(json.loads(found["gen_ai.tool.definitions"])) == len(call.prompt.tools) > 0


AGENT, CHAT, CELL, QUERY = "invoke_agent code", "chat scripted", "execute_tool python", "llm_query"
#: Spans by their name, that of the parent, and the kind of the error.
TURN = [(CHAT, AGENT, None), (CELL, AGENT, None)]
BELOW = [(AGENT, CELL, None), (AGENT, CELL, None), (AGENT, CELL, "runtime"), (QUERY, CELL, None), (CHAT, QUERY, None)]
FAILED = [(CHAT, AGENT, None), (CELL, AGENT, "runtime")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tool_loop_sub_agents", [(AGENT, None, None), *BELOW, *TURN * 7, *FAILED * 2]),
        ("model_error", [(AGENT, None, "failed"), *TURN, (CHAT, AGENT, "ModelError")]),
        ("interrupted", [(AGENT, None, "interrupted"), *TURN, (CHAT, AGENT, "KeyboardInterrupt")]),
    ],
)
def test_the_tree_of_spans_and_their_errors(name: str, expected: list[Any]) -> None:
    spans: list[Any] = spans_of(conversation_of(read(ROOT / f"tests/golden/{name}.jsonl")))
    names = {span.context.span_id: span.name for span in spans}
    tree = [(s.name, s.parent and names[s.parent.span_id], s.attributes.get("error.type")) for s in spans]
    assert Counter(tree) == Counter(expected)
    code = {span.context.span_id: span.attributes.get("gen_ai.tool.call.arguments", "") for span in spans}
    assert all("llm_query" in code[span.parent.span_id] for span in spans[1:] if span.name == AGENT)
    places = {span.context.span_id: place for place, span in enumerate(spans)}
    assert all(places[span.parent.span_id] < places[span.context.span_id] for span in spans if span.parent)


def test_every_name_is_one_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

    def values(module: Any) -> set[str]:
        return {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}

    general = values(gen_ai_attributes) | values(error_attributes)
    operations = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}
    runs = [conversation_of(read(path), Score(True, 1.0, "right")) for path in GOLDEN]
    for span in (span for run in runs for span in spans_of(run)):
        assert span.attributes.get("gen_ai.operation.name", "chat") in operations
        names = {*span.attributes, *(name for event in span.events for name in event.attributes)}
        assert [name for name in names - general if not name.startswith("rlm_loop.")] == []


def test_an_endpoint_gets_the_spans_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=7")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=golden")
    with upstream(TAKEN) as server:
        assert main(["trace", "export", str(SUB_AGENTS), "--to", "otel", "--out", server.url]) == 0
    out = tmp_path / "run.otlp.jsonl"
    assert main(["trace", "export", str(SUB_AGENTS), "--to", "otel", "--out", str(out)]) == 0
    sent = received(server)
    assert [span for body in sent for span in spans_in(body)] == spans_in(parsed(out))
    assert {(got.path, got.header("x-mlflow-experiment-id")) for got in server.got} == {("/v1/traces", "7")}
    told = attributes(sent[0].resource_spans[0].resource)
    assert (told["service.namespace"], told["service.name"]) == ("golden", "rlm-loop")


def test_an_endpoint_that_refuses_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with upstream(Answer.of("", 400, Connection="close")) as server:
        assert main(["trace", "export", str(SUB_AGENTS), "--to", "otel", "--out", server.url]) == 2
    assert f"error: {server.url} did not take the spans" in capsys.readouterr().err


def test_a_study_goes_out_with_its_scores(tmp_path: Path) -> None:
    study = load_study(ROOT / "experiments/recovery/results")
    rows = study.rows[:6]
    files = export_study(replace(study, rows=rows), "otel", tmp_path)
    roots = [spans_in(line)[0] for path in files for line in lines_in(path)]
    labels = [attributes(root.events[0])["gen_ai.evaluation.score.label"] for root in roots]
    told = [(attributes(root)["rlm_loop.episode.arm"], label) for root, label in zip(roots, labels, strict=True)]
    assert sorted(told) == sorted((row["arm"], "resolved" if row["resolved"] else "not resolved") for row in rows)
