"""Log lines: what happened and to whom, for people and for programs alike, with no secret in them.

Standard `logging`, no handler of ours.  Every line has the same fields (`FIELDS`): those that are known stand in the
message as `name=value`, and all are attributes of the record (`None`: not known, or of no use here), so that a
formatter, of JSON say, has them apart.  Where the level is off, a line costs a comparison.
"""

from __future__ import annotations

import json
import logging
import os
import re
import traceback
from collections.abc import Mapping
from typing import Any, cast

from rlm_loop.traces.redact import redactor

#: `call_id` is the number of a model call in its run, or the id that a model gave a call of a tool; `tokens` is input
#: plus output; `steps_remaining` is said of the root agent where its steps are limited.
FIELDS = ("run", "task", "node", "turn", "call_id", "tool", "seconds", "tokens", "steps_remaining", "error_kind")

_PLAIN = re.compile(r"[\w.:/@+-]+")


def say(logger: logging.Logger, what: str, *, level: int = logging.INFO, **values: Any) -> None:
    """Write a line: the event, then the fields that are known, then any further values."""
    if not logger.isEnabledFor(level):
        return
    hidden = redactor(os.environ)
    known: dict[str, Any] = {name: hidden.value(values.get(name)) for name in FIELDS}
    more = {name: value for name, value in values.items() if name not in known}
    pairs = [f"{name}={_shown(value)}" for name, value in {**known, **more}.items() if value is not None]
    logger.log(level, "%s", hidden(" ".join([what, *pairs])), extra=known, stacklevel=2)


def exception(logger: logging.Logger, what: str, error: BaseException, **values: Any) -> None:
    """An error with its traceback, which is text of the line: handlers would format it with whatever it quotes."""
    told = "".join(traceback.format_exception(error)).rstrip()
    say(logger, f"{what}\n{told}\n", level=logging.ERROR, error_kind=type(error).__name__, **values)


def tell(logger: logging.Logger, event: str, data: Mapping[str, Any], **values: Any) -> None:
    """An event of a trace as a line, where it is one that people follow a run by."""
    level = _LEVELS.get(event)
    if level is not None and logger.isEnabledFor(level):
        own = {name: data.get(name) for name in ("turn", "call_id", "seconds", "stop", "steps")}
        say(logger, event, level=level, **{"node": data.get("node", "0"), **own, **_of(event, data), **values})


_LEVELS = {
    "run_start": logging.INFO,
    "turn": logging.INFO,
    "run_end": logging.INFO,
    "model_error": logging.INFO,
    "reply": logging.DEBUG,
    "subcall_start": logging.DEBUG,
    "subcall_end": logging.DEBUG,
}


def _of(event: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that only this kind of event has."""
    match event:
        case "run_start":
            return {"agent": data.get("agent"), "model": data.get("model")}
        case "reply":
            return {"seconds": data["reply"].seconds}
        case "turn":
            kinds = [seen.failure.kind for seen in data.get("observations", ()) if seen.failure is not None]
            return {"error_kind": kinds[0] if kinds else None}
        case "model_error":
            kind, _, message = str(data["error"]).partition(": ")
            return {"error_kind": kind, "message": message[:500]}
        case "subcall_end":
            error = cast("Mapping[str, Any]", data.get("error") or {})
            return {"error_kind": error.get("kind")}
        case "run_end":
            failed = str(data.get("stop")) == "failed"
            return {"error_kind": str(data.get("reason", "")).partition(":")[0] if failed else None}
        case _:
            return {}


def _shown(value: Any) -> str:
    """A value that cannot be taken for another field or another line."""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
