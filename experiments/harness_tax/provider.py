"""A provider that asks the script, in the four APIs that the agents speak: it stands behind the meter.

Its usage states the tokens of the counter, so that the meter's rows sum to those.  A stream is whole before its first
event.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall
from rlm_loop.meter import chat, gemini, messages, responses

_APIS = ((r"/chat/completions", chat), (r"/responses", responses), (r"/messages", messages))
_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<what>\w+)$")
_NUMBERS = itertools.count(1)


@contextmanager
def serve(model: Any, counter: Any) -> Iterator[str]:
    """Serve in a thread for the time of the block; yields the address."""
    handler = type("Provider", (_Handler,), {"model": model, "counter": counter})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: Any
    counter: Any

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0].rstrip("/")
        named = _GEMINI.search(path)
        counts = path.endswith("/count_tokens") or (named is not None and named["what"] == "countTokens")
        api = next((api for end, api in _APIS if path.removesuffix("/count_tokens").endswith(end)), named and gemini)
        if api is None:
            self._send(404, "application/json", json.dumps({"error": {"message": f"nothing is at {path}"}}))
            return
        try:
            request = api.read(body.get("generateContentRequest") or body)
            prompt = Prompt(tuple(map(_message, request.messages)), request.tools, reply_schema=request.reply_schema)
            used = sum(part.tokens for part in self.counter.measure(prompt))
            if counts:
                self._send(200, "application/json", json.dumps({"input_tokens": used, "totalTokens": used}))
                return
            reply = self.model.complete(prompt)
        except Exception as error:  # the meter notes what is said here
            self._send(400, "application/json", json.dumps({"error": {"message": f"{type(error).__name__}: {error}"}}))
            return
        out = sum(-(-len(text) // 4) for text in (reply.text, *(call.arguments for call in reply.tool_calls)))
        stream = request.stream or (named is not None and named["what"] == "streamGenerateContent")
        events, whole = _WRITERS[api](reply, request, str(next(_NUMBERS)), used, out)
        if stream:
            self._send(200, "text/event-stream; charset=utf-8", "".join(events))
        else:
            self._send(200, "application/json", json.dumps(whole))

    def do_GET(self) -> None:
        entry = {"id": "scripted", "object": "model", "created": 0, "owned_by": "script"}
        self._send(200, "application/json", json.dumps({"object": "list", "data": [entry]}))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


def _message(said: Any) -> Message:
    spans = (Span(said.text, "task"),) if said.text else ()
    return Message(said.role, spans, said.tool_calls, said.tool_call_id)


def _event(event: Mapping[str, Any], named: bool = True) -> str:
    return (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"


def _object(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {"input": text}


Written = tuple[Iterator[str], dict[str, Any]]


def _chat(reply: Reply, request: Any, name: str, used: int, out: int) -> Written:
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments or "{}"}}
        for c in reply.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}
    head = {"id": f"chatcmpl-{name}", "created": 1, "model": request.model}
    usage = {"prompt_tokens": used, "completion_tokens": out, "total_tokens": used + out}
    finish = "tool_calls" if calls else "stop"
    delta = message | ({"tool_calls": [{"index": i, **call} for i, call in enumerate(calls)]} if calls else {})
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]
    kind = "chat.completion.chunk"
    events = (_event({**head, "object": kind, **chunk}, named=False) for chunk in chunks)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return itertools.chain(events, ["data: [DONE]\n\n"]), {
        **head,
        "object": "chat.completion",
        "choices": [choice],
        "usage": usage,
    }


def _responses(reply: Reply, request: Any, name: str, used: int, out: int) -> Written:
    spaces = {tool["function"]["name"]: tool["namespace"] for tool in request.tools if "namespace" in tool}
    custom = {tool.get("name") for tool in request.tools if tool.get("type") == "custom"}
    items: list[dict[str, Any]] = []
    if reply.text or not reply.tool_calls:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        about = {"type": "message", "id": f"msg_{name}", "status": "completed", "role": "assistant"}
        items.append({**about, "content": content})
    for index, call in enumerate(reply.tool_calls):
        items.append(_item(call, f"{name}_{index}", spaces.get(call.name), call.name in custom))
    whole = {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "incomplete_details": None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "model": request.model,
        "output": items,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used + out,
        },
    }
    events = _response_events(whole, items)
    return (_event({**event, "sequence_number": number}) for number, event in enumerate(events)), whole


def _item(call: ToolCall, name: str, space: str | None, custom: bool) -> dict[str, Any]:
    about = {"call_id": call.id, "name": call.name, "status": "completed"}
    if space:
        about |= {"name": call.name.removeprefix(f"{space}__"), "namespace": space}
    if custom:
        given = _object(call.arguments)
        text = given["input"] if isinstance(given, dict) and set(given) == {"input"} else call.arguments
        return {"type": "custom_tool_call", "id": f"ctc_{name}", **about, "input": text}
    return {"type": "function_call", "id": f"fc_{name}", **about, "arguments": call.arguments or "{}"}


def _response_events(whole: Mapping[str, Any], items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part, at = item["content"][0], {**at, "content_index": 0}
            yield _added(index, {**item, "status": "in_progress", "content": []})
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            yield {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": part}
        else:
            custom = item["type"] == "custom_tool_call"
            field, kind = ("input", "custom_tool_call_input") if custom else ("arguments", "function_call_arguments")
            yield _added(index, {**item, "status": "in_progress", field: ""})
            yield {"type": f"response.{kind}.delta", **at, "delta": item[field]}
            yield {"type": f"response.{kind}.done", **at, field: item[field], "name": item["name"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def _added(index: int, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _messages(reply: Reply, request: Any, name: str, used: int, out: int) -> Written:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.tool_calls:
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)})
    usage = {"input_tokens": used, "output_tokens": out}
    ended = {"stop_reason": "tool_use" if reply.tool_calls else "end_turn", "stop_sequence": None}
    head = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": request.model}
    whole = {**head, "content": content, **ended, "usage": usage}
    return map(_event, _message_events(whole, ended)), whole


def _message_events(whole: Mapping[str, Any], ended: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def _gemini(reply: Reply, request: Any, name: str, used: int, out: int) -> Written:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text or not reply.tool_calls else []
    for call in reply.tool_calls:
        parts.append({"functionCall": {"id": call.id, "name": call.name, "args": _object(call.arguments)}})
    whole = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": used, "candidatesTokenCount": out, "totalTokenCount": used + out},
        "modelVersion": request.model,
        "responseId": name,
    }
    return iter([_event(whole, named=False)]), whole


_WRITERS: Mapping[Any, Any] = {chat: _chat, responses: _responses, messages: _messages, gemini: _gemini}
