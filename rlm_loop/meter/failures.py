"""Errors as clients are told them: status and kind by whose fault it is."""

from __future__ import annotations

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

_BY_CLASS: tuple[tuple[type[ModelError], int, str, str | None], ...] = (
    (AuthenticationFailed, 401, "authentication_error", "invalid_api_key"),
    (ModelNotFound, 404, "invalid_request_error", "model_not_found"),
    (Diverged, 400, "invalid_request_error", "diverged"),
    (RateLimited, 429, "rate_limit_error", "rate_limit_exceeded"),
    (ModelUnreachable, 503, "server_error", "model_unreachable"),
)


def failure(error: BaseException) -> Refused:
    """Return the answer that tells a client of an error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, BudgetSpent):
        message = f"the meter's budget is spent: {error}"
        return Refused(message, status=429, kind="insufficient_quota", code="insufficient_quota")
    if isinstance(error, Cancelled):
        return Refused("the meter is closing: ask again when it is up", status=503, kind="server_error", again=True)
    if isinstance(error, RequestRejected):
        return Refused(error.message, code="context_length_exceeded" if "window" in error.message else None)
    if not isinstance(error, ModelError):
        return Refused(f"{type(error).__name__}: {error}", status=500, kind="server_error")
    other = (ModelError, 503 if error.retryable else 500, "server_error", None)
    _, status, kind, code = next((known for known in _BY_CLASS if isinstance(error, known[0])), other)
    again = error.retryable or status == 429
    return Refused(error.message, status=status, kind=kind, code=code, again=again, after=error.retry_after)
