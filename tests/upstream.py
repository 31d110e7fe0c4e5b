"""A provider that is scripted: it keeps the bytes of each request and answers piece by piece."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from loopback import Answering, Loopback

EVENT_STREAM = [("Content-Type", "text/event-stream; charset=utf-8"), ("X-Request-Id", "r-1")]


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


def until_gone(handler: Any) -> None:
    """A piece of an answer that never comes: the client has to hang up."""
    while handler.connection.recv(1):
        pass
    raise ConnectionError


@dataclass
class Answer:
    """What is sent back.  A piece is bytes, an event to wait for, or a callable; `None` breaks the connection off.

    What tells the `end` of the body is its length, its last chunk or the end of the connection.
    """

    pieces: Sequence[Any] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    end: Literal["length", "chunk", "connection"] = "chunk"

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> Answer:
        """A text as it is, anything else as JSON."""
        named = [(k.replace("_", "-"), v) for k, v in headers.items()]
        text = value if isinstance(value, str) else json.dumps(value)
        return cls([text.encode()], status, [("Content-Type", "application/json"), *named], "length")

    @classmethod
    def events(cls, *events: Any, named: bool = False) -> Answer:
        def line(event: Any) -> bytes:
            data = event if isinstance(event, str) else json.dumps(event)
            name = f"event: {event['type']}\n" if named else ""
            return f"{name}data: {data}\n\n".encode()

        pieces = [e if e is None or isinstance(e, threading.Event) or callable(e) else line(e) for e in events]
        return cls(pieces, headers=EVENT_STREAM)


def readable(usage: dict[str, Any]) -> Answer:
    """An answer that can be read as a reply of each API."""
    said = {"type": "message", "role": "assistant"}
    chat = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}}], "usage": usage}
    output = [{"id": "item_1", **said, "content": [{"type": "output_text", "text": "Done."}]}]
    messages = {"id": "reply_1", "content": [{"type": "text", "text": "Done."}]}
    candidates = [{"content": {"role": "model", "parts": [{"text": "Done."}]}}]
    return Answer.of({**chat, "output": output, **messages, "candidates": candidates, "usageMetadata": usage})


_READ = dict.fromkeys(("prompt_tokens", "input_tokens", "promptTokenCount"), 100_000)
_WROTE = dict.fromkeys(("completion_tokens", "output_tokens", "candidatesTokenCount"), 1)
ANY = readable({**_READ, **_WROTE})


def completion(text: str | None = "hi", **more: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "x1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **more}


@dataclass
class Upstream:
    """`got` are the requests; `answers` are given in order, the last for ever; `gone` is set when a client leaves."""

    answers: list[Answer | Callable[[Got], Answer]]
    got: list[Got] = field(default_factory=list)
    url: str = ""
    gone: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, *values: Any, status: int = 200, **headers: str) -> None:
        self.answers += [Answer.of(value, status, **headers) for value in values]

    @property
    def requests(self) -> list[Any]:
        """The bodies that came."""
        return [got.json() for got in self.got]

    def next(self, got: Got) -> Answer:
        with self.lock:
            self.got.append(got)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Answer) else answer(got)


@contextmanager
def upstream(*answers: Answer | Callable[[Got], Answer]) -> Iterator[Upstream]:
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
            if answer.end == "length":
                self.send_header("Content-Length", str(sum(map(len, answer.pieces))))
            elif answer.end == "chunk":
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Connection", "close")
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
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if answer.end == "chunk" else piece)
            if answer.end == "chunk":
                self.wfile.write(b"0\r\n\r\n")

    class Server(Loopback):
        def handle_error(self, *_: Any) -> None:
            state.gone.set()

    with Server(Handler) as server:
        state.url = server.address
        yield state
