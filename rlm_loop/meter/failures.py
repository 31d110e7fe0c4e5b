"""Errors as clients are told them: status and kind by whose fault it is."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.meter.request import Refused
from rlm_loop.models.base import (
    AuthenticationFailed,
    Diverged,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    RateLimited,
    RequestRejected,
)


@dataclass(frozen=True)
class ErrorReply:
    """An error as it goes to the client.  `again` is whether the same request may help later."""

    status: int
    kind: str
    message: str
    param: str | None = None
    code: str | None = None
    again: bool = False
    after: float | None = None


_BY_CLASS: tuple[tuple[type[ModelError], int, str, str | None], ...] = (
    (AuthenticationFailed, 401, "authentication_error", "invalid_api_key"),
    (ModelNotFound, 404, "invalid_request_error", "model_not_found"),
    (Diverged, 400, "invalid_request_error", "diverged"),
    (RateLimited, 429, "rate_limit_error", "rate_limit_exceeded"),
    (ModelUnreachable, 503, "server_error", "model_unreachable"),
)


def failure(error: BaseException) -> ErrorReply:
    """Return the answer that tells a client of an error."""
    if isinstance(error, Refused):
        kind = "not_found_error" if error.status == 404 else "invalid_request_error"
        return ErrorReply(error.status, kind, error.message, error.param, error.code)
    if isinstance(error, BudgetSpent):
        return ErrorReply(429, "insufficient_quota", f"the meter's budget is spent: {error}", code="insufficient_quota")
    if isinstance(error, Cancelled):
        return ErrorReply(503, "server_error", "the meter is closing: ask again when it is up", again=True)
    if isinstance(error, RequestRejected):
        code = "context_length_exceeded" if "window" in error.message else None
        return ErrorReply(400, "invalid_request_error", error.message, code=code)
    if not isinstance(error, ModelError):
        return ErrorReply(500, "server_error", f"{type(error).__name__}: {error}")
    for kind, status, name, code in _BY_CLASS:
        if isinstance(error, kind):
            again = error.retryable or status == 429
            return ErrorReply(status, name, error.message, code=code, again=again, after=error.retry_after)
    status = 503 if error.retryable else 500
    return ErrorReply(status, "server_error", error.message, again=error.retryable, after=error.retry_after)
