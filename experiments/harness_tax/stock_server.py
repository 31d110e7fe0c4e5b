"""An MCP server of ten small tools over standard input and output, with the standard library alone.

No tool is ever called in the study: what is measured is what their schemas add to each request.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ABOUT = ("count", "price", "weight", "colour", "maker", "shelf", "age", "origin", "tax", "note")


def _tools() -> list[dict[str, Any]]:
    part = {"type": "string", "description": "The name of the part, as it stands in the stock list."}
    when = {"type": "string", "description": "The day to look at, as YYYY-MM-DD. Without it: today."}
    schema = {"type": "object", "properties": {"part": part, "day": when}, "required": ["part"]}
    return [
        {
            "name": f"get_{what}",
            "description": f"Look up the {what} of one part in the stock list, on one day. Returns one line of text, "
            "or says that there is no such part.",
            "inputSchema": schema,
        }
        for what in ABOUT
    ]


def _answer(request: dict[str, Any]) -> Any:
    method, params = request.get("method"), request.get("params") or {}
    if method == "initialize":
        about = {"name": "stock", "version": "1.0.0"}
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": _tools()}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "There is no such part."}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": _answer(request)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
