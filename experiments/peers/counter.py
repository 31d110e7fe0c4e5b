"""The tokens of a prompt by the tokenizer and the chat template in a GGUF file, without loading its weights.

The same count as `LocalModel.measure` gives for a Qwen2.5 file, in a fraction of its start-up time and memory:
`--exact` of `overhead.py` takes the loaded model instead, and the figures are the same.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from rlm_loop.accounting import Part
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import Model, ModelError
from rlm_loop.models.measure import measure

_FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_CONTROL, _USER_DEFINED = 3, 4
#: How Qwen2 cuts a text into words before it merges bytes (llama.cpp's pre-tokenizer `qwen2`).
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class FileCounter(Model):
    """Counts as the model in a GGUF file does.  Needs `tokenizers` and `jinja2`.

    Raises `ValueError` for a file whose tokenizer is another than Qwen2's.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._facts = facts(path)
        kind = self._facts.get("tokenizer.ggml.pre")
        if kind != "qwen2":
            raise ValueError(f"{path.name} has the tokenizer {kind!r}; only qwen2 is known here, use --exact")

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Raise `ModelError`: it counts alone."""
        raise ModelError("this model only counts", self.name)

    def measure(self, prompt: Prompt) -> list[Part]:
        """The parts of a prompt in reading order; their sum is what the model would report."""
        body = prompt.to_dict()
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                with suppress(ValueError):  # plain text, for a tool that takes it
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"] or "{}")
        return measure(prompt, body, self._render, self._tokenize)

    def _render(self, body: Mapping[str, Any]) -> str:
        return self._template.render(
            messages=body["messages"], tools=body.get("tools"), add_generation_prompt=True, bos_token="", eos_token=""
        )

    def _tokenize(self, text: str) -> Sequence[bytes]:
        data, starts = text.encode(), [0]
        for character in text:
            starts.append(starts[-1] + len(character.encode()))
        edges = [starts[first] for first, _last in self._tokenizer.encode(text, add_special_tokens=False).offsets]
        return [data[first:last] for first, last in zip(edges, [*edges[1:], len(data)], strict=True)]

    @cached_property
    def _template(self) -> Any:
        from jinja2 import Environment

        environment = Environment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        return environment.from_string(self._facts["tokenizer.chat_template"])

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import AddedToken, Regex, Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

        words, kinds = self._facts["tokenizer.ggml.tokens"], self._facts["tokenizer.ggml.token_type"]
        merges = [tuple(pair.split(" ")) for pair in self._facts["tokenizer.ggml.merges"]]
        made = Tokenizer(BPE({word: number for number, word in enumerate(words)}, merges))
        bytes_only = ByteLevel(add_prefix_space=False, use_regex=False, trim_offsets=False)
        made.pre_tokenizer = Sequence([Split(Regex(_WORDS), "isolated"), bytes_only])
        special = [w for w, kind in zip(words, kinds, strict=True) if kind in (_CONTROL, _USER_DEFINED)]
        made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
        return made


def facts(path: Path) -> dict[str, Any]:
    """What the header of a GGUF file says of the tokenizer."""
    with path.open("rb") as stream:
        magic, _version, _tensors, pairs = struct.unpack("<4sIQQ", stream.read(24))
        if magic != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
        return {_text(stream): _value(stream, *struct.unpack("<I", stream.read(4))) for _ in range(pairs)}


def _text(stream: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", stream.read(8))
    return stream.read(length).decode("utf-8", "replace")


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(stream)
    if kind == _ARRAY:
        inner, count = struct.unpack("<IQ", stream.read(12))
        return [_value(stream, inner) for _ in range(count)]
    form = "<" + _FORMS[kind]
    return struct.unpack(form, stream.read(struct.calcsize(form)))[0]
