"""An MCP server in the standard library alone, since it starts in 30 ms; some of its tools misbehave.

It keeps to the handshake of the protocol's version 2025-06-18, and sends its tools in two pages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PEOPLE = [{"name": "Ada", "age": 36, "city": "London"}, {"name": "Grace", "age": 85, "city": "Arlington"}]
TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


NUMBERS = schema("a", "b", a=INTEGER | {"description": "the first"}, b=INTEGER)
NUMBERS |= {"title": "add", "$schema": "http://json-schema.org/draft-07/schema#"}
LIMIT, AGE = INTEGER | {"default": 10}, {"type": ["integer", "null"]}
CHOICE = schema(**{"in": TEXT | {"enum": ["London", "Arlington"]}, "limit": LIMIT, "min-age": AGE})
FOUND, TIMES = schema(result={"type": "array", "items": {"type": "object"}}), schema(content=TEXT)
TOOLS: list[dict[str, Any]] = [
    {"name": "add-numbers", "description": "Add two numbers.\n\nBoth are whole.", "inputSchema": NUMBERS},
    {"name": "people", "description": "Of a city or of all.", "inputSchema": CHOICE, "outputSchema": FOUND},
    {"name": "count", "description": "Calls until now.", "inputSchema": schema(), "outputSchema": TIMES},
    {"name": "text", "inputSchema": schema("characters", characters=INTEGER)},
    {"name": "picture", "description": "A picture and its caption.", "inputSchema": schema()},
    {"name": "refuse", "description": "Fails, and says why.", "inputSchema": schema()},
    {"name": "wait", "description": "Never answers.", "inputSchema": schema()},
    {"name": "die", "description": "Ends the server.", "inputSchema": schema("status", status=INTEGER)},
    {"name": "odd", "description": "Answers outside of the protocol.", "inputSchema": schema()},
    {"name": "pid", "description": "The server's process, and that of a child.", "inputSchema": schema()},
]
COUNTED = 0


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    global COUNTED
    if name == "add-numbers":
        return said(str(arguments["a"] + arguments["b"]))
    if name == "people":
        found = [p for p in PEOPLE if arguments.get("in") in (None, p["city"])]
        found = [p for p in found if p["age"] >= arguments.get("min-age", 0)][: arguments.get("limit", 10)]
        return {**said(json.dumps(found)), "structuredContent": {"result": found}}
    if name == "count":
        COUNTED += 1
        return {**said(str(COUNTED)), "structuredContent": {"content": str(COUNTED)}}
    if name == "text":
        return said("x" * arguments["characters"])
    if name == "picture":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, said("a dot")["content"][0]]}
    if name == "refuse":
        return {**said("the disk is full"), "isError": True}
    if name == "wait":
        time.sleep(3600)
    if name == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(arguments["status"])
    if name == "odd":
        return {"content": ["3 rows", {"type": "video", "uri": "a:b"}], "isError": None}
    if name == "pid":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        return said(f"{os.getpid()} {child.pid}")
    raise KeyError(name)


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        version = {"name": "stand-in", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": version}
    if method == "tools/list":
        return {"tools": TOOLS[6:]} if params.get("cursor") else {"tools": TOOLS[:6], "nextCursor": "more"}
    return call(params["name"], params.get("arguments") or {}) if method == "tools/call" else None


def main() -> None:
    note = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if note is not None:
        note.write_text(note.read_text() + "started\n" if note.exists() else "started\n")
    print("a greeting that is no message")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        found = answer(asked["method"], asked.get("params") or {})
        told = {"error": {"code": -32601, "message": "no such method"}} if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)


if __name__ == "__main__":
    main()
