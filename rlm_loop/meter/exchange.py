"""A request and its outcome, as the meter keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class MeteredCall:
    """A request to the meter, served or not.

    `call` is its number in the session's ledger (`None`: it was refused or the model failed, nothing was charged),
    `node` the conversation ("0" is the session's first, "0.1" the next beside it), `turn` the reply's number in it.
    `model_seconds` is the model's own time.  `harness_seconds` is the time of the framework: from the end of the
    session's reply before to the arrival of this request (0 where others were under way, `None` for the first).
    `meter_seconds` is what the meter itself took: reading, counting, waiting for a free model, writing.
    `delivered` is false where the client had hung up: the call is charged all the same.
    `first_byte_seconds` is the time from the arrival to the first byte of a provider's answer, `unread` why a request
    or reply that went through could not be read (its tokens are `unattributed` then).
    `not_applied` is what the request asked for in vain (see `request.Request`).
    """

    session: str
    number: int
    protocol: str = ""
    node: str = "0"
    turn: int = 0
    call: int | None = None
    model: str = ""
    stream: bool = False
    status: int = 200
    error: str | None = None
    arrived: float = 0.0
    model_seconds: float = 0.0
    harness_seconds: float | None = None
    meter_seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    delivered: bool = True
    not_applied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    first_byte_seconds: float | None = None
    unread: str = ""
    ended: float = field(default=0.0, compare=False)
