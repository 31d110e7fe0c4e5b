"""Bodies of requests and a client for them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def post(url: str, body: Any, path: str = "/chat/completions", **headers: str) -> httpx.Response:
    """One request on a connection of its own; `body` is JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with httpx.Client(trust_env=False, verify=False, timeout=300) as client:
        return client.post(f"{url}{path}", content=content, headers={"Content-Type": "application/json", **named})


def ask(url: str, *messages: dict[str, Any], headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    return post(url, {"model": "any", "messages": list(messages), **more}, **(headers or {}))


@contextmanager
def streaming(url: str, text: str) -> Iterator[Iterator[str]]:
    """The lines of a streamed answer as they come."""
    asked = {"model": "m", "messages": [user(text)], "stream": True}
    where = f"{url}/chat/completions"
    with httpx.stream("POST", where, json=asked, trust_env=False, verify=False, timeout=120) as response:
        yield response.iter_lines()


def events(response: httpx.Response) -> list[Any]:
    """The data of server-sent events; `[DONE]` stays text."""
    found = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(data) if data != "[DONE]" else data for data in found]


def connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0])), timeout=60)


def raw(url: str, request: bytes, *, half: bool = False) -> bytes:
    """Return what comes back on a connection of its own, head included, until either side (`half`: we) hangs up."""
    with connected(url) as sock:
        sock.sendall(request)
        if half:
            sock.shutdown(socket.SHUT_WR)
        came = b""
        while part := sock.recv(65536):
            came += part
        return came
