"""Recorded traces of schemas 2 to 4 as ones of schema 5: `python experiments/migrate_traces.py ARCHIVE ...`.

It was run once, on all archives of this folder, before the readers of schemas 2 and 3 went.  What a later schema says
beside an older one is taken from what the older reader made of it: the node of an event, how the agent was made, and
what it was told of its task.  Runs get an id (of the file's name), calls theirs; classes lose their modules.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_loop.agents.made import made_of
from rlm_loop.messages import digest
from rlm_loop.replaying.agent_again import _of_settings
from rlm_loop.replaying.recorded import NodeRecord, Recorded
from rlm_loop.replaying.recorded_world import had_workspace
from rlm_loop.replaying.stand_ins import offered, told_context, told_names, tools_of
from rlm_loop.trace_reader import RunRecord
from rlm_loop.trace_runs import runs_in
from rlm_loop.trace_tree.build import OldPaths

PLAIN = ("message", "settings", "text", "tools", "context", "run_start")


def migrated(name: str, path: Path) -> str:
    lines: list[str] = []
    for run in runs_in(path):
        assert run.fault is None
        record = RunRecord(tuple(run.events), run.number)
        id_ = "r" + hashlib.sha256(f"{name}#{run.number}".encode()).hexdigest()[:10]
        lines += [json.dumps({"run": id_, **e}, separators=(",", ":")) for e in events(record)]
    return "\n".join([*lines, ""])


def events(record: RunRecord) -> Iterator[dict[str, Any]]:
    schema = record.start["schema"]
    recorded = Recorded(record)
    paths, calls = OldPaths(), 0
    open_: dict[str, int] = {}
    for event in record.events:
        kind, e = event["event"], dict(event)
        e.pop("event")
        at = e.pop("at")
        if kind == "run_start":
            e["schema"] = 5
            if schema < 4:
                notes: list[str] = []
                agent = _of_settings(record.start, notes, recorded.root.__class__)
                assert not notes, notes
                e["made"] = {
                    **made_of(agent),
                    "tools": [] if recorded.attempts else [t.name for t in tools_of(recorded, recorded.root)],
                }
                if e["made"]["tools"] and not agent_has_tools(record):
                    e["made"]["tools"] = []
                e["price"] = None
            e["made"] = short(e["made"])
            order = [
                "schema",
                "task",
                "question",
                "agent",
                "settings",
                "made",
                "price",
                "model",
                "budget",
                "versions",
                "context",
            ]
            assert set(order) == set(e), set(order) ^ set(e)
            e = {k: e[k] for k in order}
        elif kind not in PLAIN:
            node = paths.of(event)
            e = {"node": node, **e}
            if kind == "request":
                calls += 1
                assert node not in open_, "two calls of one node at once"
                open_[node] = e["call_id"] = calls
            elif kind in ("reply", "model_error") and node in open_:
                e["call_id"] = open_.pop(node)
        yield {"event": kind, "at": at, **e}
        if schema < 4 and kind == "run_start":
            yield from told(recorded, recorded.root, at, 0)
        elif schema < 4 and kind == "subcall_start" and e["kind"] == "agent":
            yield from told(recorded, recorded.node(e["node"]), at, e["depth"])


TOOLS: set[str] = set()


def agent_has_tools(record: RunRecord) -> bool:
    return False  # the tools of all these runs came with their tasks


def told(recorded: Recorded, node: NodeRecord, at: float, depth: int) -> Iterator[dict[str, Any]]:
    hands = (
        "none"
        if recorded.start["settings"]["agent"] == "DirectAgent"
        else {"code": "code"}.get(
            recorded.start["settings"]["dialect"].get("hands"), recorded.start["settings"]["dialect"].get("hands")
        )
    )
    question = recorded.start["question"] if node.path == "0" else recorded.text(node.start["prompt_sha256"]) or ""
    if node.path == "0":
        context = (
            told_context(node, question, hands)
            if recorded.start.get("context") or recorded.record.of("context")
            else None
        )
    else:
        context = told_context(node, question, hands) if node.start.get("context") is not None else None
    own = tools_of(recorded, node)
    key = None
    if own:
        tools = [
            {
                "name": t.told["name"],
                "description": t.told["description"],
                "signature": t.told["signature"],
                **({"parameters": t.told["parameters"]} if hands != "code" else {}),
            }
            for t in own
        ]
        key = digest({"event": "tools", "tools": tools})
        if key not in recorded.__dict__.setdefault("_kept", set()):
            recorded.__dict__["_kept"].add(key)
            yield {"event": "tools", "at": at, "hash": key, "tools": tools}
    names = offered(node)
    yield {
        "event": "problem",
        "at": at,
        "node": node.path,
        "depth": depth,
        "turn": 0,
        "context": "" if context is None else context.line,
        "inline_chars": 0 if context is None else len(context.inline),
        "told": told_names(node),
        "tools": key,
        "repl": "python" in names or hands == "code",
        "workspace": "" if had_workspace(node) else None,
        "setup": None,
        "files": {},
    }


def short(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: v.rpartition(".")[2] if k == "is" and str(v).startswith("rlm_loop.") else short(v)
            for k, v in value.items()
        }
    return [short(v) for v in value] if isinstance(value, list) else value


def main() -> None:
    for archive in map(Path, sys.argv[1:]):
        packed = io.BytesIO()
        with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as new:
            for member in old:
                file = Path("/tmp/one.jsonl")
                file.write_bytes(old.extractfile(member).read())
                try:
                    data = migrated(member.name, file).encode()
                except Exception as error:
                    raise SystemExit(f"{archive} {member.name}: {type(error).__name__}: {error}") from error
                made = tarfile.TarInfo(member.name)
                made.size, made.mode = len(data), 0o644
                new.addfile(made, io.BytesIO(data))
        archive.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
        print(archive)


if __name__ == "__main__":
    main()
