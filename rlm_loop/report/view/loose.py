"""The runs of a trace file in a few words each, without reading the whole of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.report.run.marked import brief
from rlm_loop.report.run.reading import mapping
from rlm_loop.traces.received import file_bytes, shown

#: The events that matter here, as the writer begins their lines.
_WANTED = re.compile(rb'^\{(?:"run":"[^"\\]*",)?"event":"(run_start|run_end|reply|turn|aborted)".*$', re.MULTILINE)
_ANSWER = 160


def runs_of(path: Path) -> list[dict[str, Any]]:
    """A dict for each run of the file that counts: `run`, `ended`, and what the columns of the table say.

    A run without an end is `running`, and its tokens are those of its replies so far.  Empty for a file that is no
    trace.  Raises `OSError` where it cannot be read.
    """
    runs: dict[str, dict[str, Any]] = {}
    for event in _events(file_bytes(path)):
        name = str(event.get("run", ""))
        if event["event"] == "run_start":
            runs[name] = _begun(event)
        elif (run := runs.get(name)) is not None:
            _told(run, event)
    return [run for run in runs.values() if not run["aborted"]]


def _events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The events that matter, in order; of a file with one run that ended, only the first and the last."""
    first, _, rest = raw.partition(b"\n")
    begun = _event(first)
    if not begun:
        return
    yield begun
    lines = list(_WANTED.finditer(rest))
    kinds = [line[1] for line in lines]
    if kinds and kinds[-1] == b"run_end" and b"run_start" not in kinds and b"aborted" not in kinds:
        last = _event(lines[-1][0])
        if last and _of_root(last):
            yield last
            return
    yield from (event for line in lines if (event := _event(line[0])))


def _event(line: bytes) -> dict[str, Any]:
    """The event of a line; empty for what is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(mapping(event).get("event"), str) else {}


def _of_root(event: dict[str, Any]) -> bool:
    return event.get("node", "0") == "0" and not event.get("depth")


def _begun(event: dict[str, Any]) -> dict[str, Any]:
    model = event.get("model")
    return {
        "run": str(event.get("run", "")),
        "aborted": False,
        "arm": str(event.get("agent") or ""),
        "model": model if isinstance(model, str) else "",
        "task": str(event.get("task") or ""),
        "seed": mapping(event.get("settings")).get("seed"),
        "state": "running",
        "stop": "running",
        "steps": 0,
        "input": 0,
        "output": 0,
        "answer": "",
        "began": event.get("at"),
    }


def _told(run: dict[str, Any], event: dict[str, Any]) -> None:
    root = _of_root(event)
    match event["event"]:
        case "aborted":
            run["aborted"] = True
        case "reply":
            _add(run, mapping(mapping(event.get("reply")).get("usage")))
            began, at = run["began"], event.get("at")
            if isinstance(began, (int, float)) and isinstance(at, (int, float)):
                run["seconds"] = round(at - began, 3)
        case "turn" if root:
            run["steps"] += 1
        case "run_end" if root:
            _ended(run, event)
        case _:
            pass


def _add(run: dict[str, Any], used: Mapping[str, Any]) -> None:
    for name in ("input", "output"):
        before, more = run[name], used.get(f"{name}_tokens")
        run[name] = before + more if isinstance(before, int) and isinstance(more, int) else None


def _ended(run: dict[str, Any], event: dict[str, Any]) -> None:
    used = mapping(event.get("usage"))
    answer = event.get("answer")
    run |= {
        "state": "no score",
        "stop": str(event.get("stop", "?")),
        "steps": event.get("steps", run["steps"]),
        "input": used.get("input_tokens", run["input"]),
        "output": used.get("output_tokens", run["output"]),
        "cost": used.get("cost"),
        "seconds": event.get("seconds", run.get("seconds")),
        "answer": "" if answer is None else brief(answer if isinstance(answer, str) else shown(answer), _ANSWER),
    }
