"""What a server may send in the place of a completion."""

from __future__ import annotations

import json
from typing import Any


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def message(**parts: Any) -> str:
    return json.dumps({"choices": [{"message": parts}], "message": parts})


BROKEN = {
    "a message that is a list": '{"choices": [{"message": [1]}], "message": [1]}',
    "a message that is an empty list": '{"choices": [{"message": []}], "message": []}',
    "no choices": '{"choices": null}',
    "choices that are an object": '{"choices": {"0": {}}}',
    "choices that are a text": '{"choices": "abc"}',
    "a choice that is nothing": '{"choices": [null]}',
    "a call that is nothing": message(tool_calls=[None]),
    "a call that is a number": message(tool_calls=[3]),
    "calls that are an object": message(tool_calls={"a": 1}),
    "a function that is a list": message(tool_calls=[{"function": [1]}]),
    "content that is a number": message(content=3),
    "content of parts that are none": message(content=[1, [2]]),
    "a number of 5,000 digits": '{"choices": [{"message": {"content": "x"}, "index": ' + "9" * 5000 + "}]}",
    "deep content": message(content="@").replace('"@"', deep(700)),
    "deep arguments": message(tool_calls=[{"function": {"name": "f", "arguments": "@"}}]).replace('"@"', deep(300)),
    "very deep JSON": deep(100_000),
    "no object": "[]",
}
