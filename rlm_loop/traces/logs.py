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
from typing import Any

from rlm_loop.traces.redact import redactor

#: `call_id` is the number of a model call in its run, or the id that a model gave a call of a tool; `tokens` is input
#: plus output; `steps_remaining` is said of a turn where steps are limited.
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
    """Write an error with its traceback as text of the line: handlers would format it with whatever it quotes."""
    told = "".join(traceback.format_exception(error)).rstrip()
    say(logger, f"{what}\n{told}\n", level=logging.ERROR, error_kind=type(error).__name__, **values)


#: Events of a trace that people follow a run by, and those that they look at closely.
_LEVELS = {
    **dict.fromkeys(("run_start", "turn", "run_end", "model_error"), logging.INFO),
    **dict.fromkeys(("reply", "subcall_start", "subcall_end"), logging.DEBUG),
}
_TOLD = ("agent", "model", "turn", "call_id", "seconds", "stop", "steps", "steps_remaining")


def tell(logger: logging.Logger, event: str, data: Mapping[str, Any], **values: Any) -> None:
    """Write an event of a trace as a line, where it is one that people follow a run by."""
    if event not in _LEVELS:
        return
    kind, own = None, {name: data[name] for name in _TOLD if name in data}
    if event == "reply":
        own["seconds"] = data["reply"].seconds
    elif event == "turn":
        kind = next((seen.failure.kind for seen in data.get("observations", ()) if seen.failure is not None), None)
    elif event == "model_error":
        kind, _, own["message"] = str(data["error"])[:500].partition(": ")
    elif event == "run_end" and str(data.get("stop")) == "failed":
        kind = str(data.get("reason", "")).partition(":")[0]
    say(logger, event, level=_LEVELS[event], node=data.get("node", "0"), error_kind=kind, **own, **values)


def _shown(value: Any) -> str:
    """A value that cannot be taken for another field or another line."""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
