"""A provider that is strict and scripted: it keeps the bytes of each request and answers piece by piece."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from loopback import Answering, Loopback


@dataclass
class Got:
    """One request as it came."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)


@dataclass
class Answer:
    """What is sent back.  A piece is bytes, an event to wait for, or a callable; `None` breaks the connection off."""

    pieces: Sequence[Any] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    length: bool = False

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> Answer:
        named = [(k.replace("_", "-"), v) for k, v in headers.items()]
        return cls([json.dumps(value).encode()], status, [("Content-Type", "application/json"), *named], length=True)

    @classmethod
    def events(cls, *events: Any, named: bool = False) -> Answer:
        def line(event: Any) -> bytes:
            data = event if isinstance(event, str) else json.dumps(event)
            name = f"event: {event['type']}\n" if named else ""
            return f"{name}data: {data}\n\n".encode()

        pieces = [e if isinstance(e, threading.Event) or callable(e) else line(e) for e in events]
        return cls(pieces, headers=[("Content-Type", "text/event-stream; charset=utf-8"), ("X-Request-Id", "r-1")])


#: An answer that can be read as a reply of each API.
_COUNTS = {"prompt_tokens": 100_000, "input_tokens": 100_000, "completion_tokens": 1, "output_tokens": 1}
_ITEM = {"id": "item_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
ANY = Answer.of(
    {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}}],
        "output": [_ITEM],
        "id": "reply_1",
        "content": [{"type": "text", "text": "Done."}],
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}}],
        "usage": _COUNTS,
        "usageMetadata": {"promptTokenCount": 100_000, "candidatesTokenCount": 1},
    }
)


@dataclass
class Upstream:
    """`got` are the requests; `answers` are given in order, the last for ever; `gone` is set when a client leaves."""

    answers: list[Answer]
    got: list[Got] = field(default_factory=list)
    url: str = ""
    gone: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, got: Got) -> Answer:
        with self.lock:
            self.got.append(got)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def upstream(*answers: Answer) -> Iterator[Upstream]:
    """Serves on the loopback for the time of the block."""
    state = Upstream(list(answers))

    class Handler(Answering):
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            assert "Transfer-Encoding" not in self.headers
            answer = state.next(Got(self.command, self.path, self.headers.items(), self.body()))
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.length:
                self.send_header("Content-Length", str(sum(map(len, answer.pieces))))
            else:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                self._send(answer)
            except OSError:
                self.close_connection = True
                state.gone.set()

        do_GET = do_DELETE = do_PATCH = do_POST

        def _send(self, answer: Answer) -> None:
            for piece in answer.pieces:
                if isinstance(piece, threading.Event):
                    assert piece.wait(60)
                elif piece is None:
                    self.close_connection = True
                    return
                elif callable(piece):
                    piece(self)
                else:
                    self.wfile.write(piece if answer.length else b"%x\r\n%b\r\n" % (len(piece), piece))
            if not answer.length:
                self.wfile.write(b"0\r\n\r\n")

    class Server(Loopback):
        def handle_error(self, *_: Any) -> None:
            state.gone.set()

    with Server(Handler) as server:
        state.url = server.address
        yield state
