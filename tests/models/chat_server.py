"""A chat-completions server of a few lines: what it answers, and what it was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, Any, dict[str, str]]


def completion(text: str | None = "hi", **more: Any) -> dict[str, Any]:
    """The body of a response."""
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": more.pop("finish_reason", "stop"), "message": message}
    return {"id": "x1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **more}


@dataclass
class ChatServer:
    """Answers each POST with the next of `answers` (the last one again and again), and keeps what it was sent."""

    answers: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    models: Any = None
    address: str = ""

    def say(self, *answers: Any, status: int = 200, **headers: str) -> None:
        self.answers += [(status, answer, {k.replace("_", "-"): v for k, v in headers.items()}) for answer in answers]
