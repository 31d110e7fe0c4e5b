"""A server on the loopback for tests: on a free port, from the moment it is made until its block is left."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Loopback(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()
        self._thread.join()


class Answering(BaseHTTPRequestHandler):
    """Keeps connections, and prints nothing."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        """A text as it is, anything else as JSON."""
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        own = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        for name, stated in {**own, **(headers or {})}.items():
            self.send_header(name, stated)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def chat(reply: Callable[[Any], str]) -> type[Answering]:
    """A model behind the chat API, by what it replies to the body of a request."""

    class Chat(Answering):
        def do_POST(self) -> None:
            message = {"role": "assistant", "content": reply(json.loads(self.body()))}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
            said = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
            self.answer(200, said)

    return Chat
