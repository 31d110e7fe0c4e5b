"""Milliseconds of one call on the loopback: our clients beside those of the providers, in a conversation of 20 turns.

    .venv/bin/python benchmarks/api_clients.py

A server in another process answers at once, so what is measured is the client: making the request, sending it, reading
the answer.  Each figure is the minimum of several rounds of a hundred calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from rlm_loop.messages import Message, Prompt, ToolCall, say
from rlm_loop.models import AnthropicModel, OpenAICompatibleModel, ResponsesModel

ROUNDS, CALLS, TURNS = 5, 100, 20
TEXT = "A line of what a tool printed, of ordinary length.\n" * 8
USAGE = {"input_tokens": 100, "output_tokens": 5}
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
answers = json.loads(sys.argv[1])

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        data = json.dumps(answers[self.path.rsplit("/", 1)[1]]).encode()
        head = f"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: {len(data)}\\r\\n\\r\\n"
        self.wfile.write(head.encode() + data)

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
ANSWERS = {
    "completions": {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    },
    "messages": {
        "id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "Yes."}], "usage": USAGE,
    },
    "responses": {
        "id": "1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto",
        "output": [
            {
                "type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
            }
        ],
        "usage": {
            **USAGE, "total_tokens": 105, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    },
}  # fmt: skip


def conversation() -> Prompt:
    """A prompt of 20 turns of a loop of calls, each with a result of 400 characters."""
    messages = [say("system", "Be brief.", "system"), say("user", "What failed?", "task")]
    for turn in range(TURNS):
        call = ToolCall(f"call_{turn}", "read_file", json.dumps({"path": f"log/{turn}.txt"}))
        messages.append(Message("assistant", tool_calls=(call,), turn=turn))
        messages.append(Message("tool", say("tool", TEXT, "tool_result").spans, tool_call_id=call.id, turn=turn))
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    function = {"name": "read_file", "description": "Read a file.", "parameters": parameters}
    return Prompt(tuple(messages), ({"type": "function", "function": function},))


def milliseconds(call: Callable[[], Any]) -> float:
    call()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1000


def main() -> None:
    import anthropic
    import openai

    from rlm_loop.models import anthropic_wire, responses_wire

    prompt = conversation()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, json.dumps(ANSWERS)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        place = f"http://127.0.0.1:{int(server.stdout.readline())}"
        claude, gpt = (
            anthropic.Anthropic(api_key="k", base_url=place),
            openai.OpenAI(api_key="k", base_url=f"{place}/v1"),
        )
        messages, items = anthropic_wire.to_request(prompt, cache=True), responses_wire.to_request(prompt)
        chat = prompt.to_dict()
        ours = {
            "chat, ours": OpenAICompatibleModel("m", f"{place}/v1", api_key="k"),
            "Messages, ours": AnthropicModel("m", place, api_key="k"),
            "Responses, ours": ResponsesModel("m", f"{place}/v1", api_key="k"),
        }
        theirs: dict[str, Callable[[], Any]] = {
            "chat, openai's": lambda: gpt.chat.completions.create(model="m", **chat),
            "Messages, anthropic's": lambda: claude.messages.create(model="m", max_tokens=100, **messages),
            "Responses, openai's": lambda: gpt.responses.create(model="m", store=False, **items),
        }
        try:
            for name, model in ours.items():
                print(f"{name:24}{milliseconds(lambda model=model: model.complete(prompt)):8.2f} ms")
            for name, call in theirs.items():
                print(f"{name:24}{milliseconds(call):8.2f} ms")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
