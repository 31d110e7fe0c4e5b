"""A model of any provider whose prompts are counted with a tokenizer at hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.models.base import Model, ModelError
from rlm_loop.models.chat_template import END, EXTRA, SEPARATOR, START, ChatTemplate, openai_chat
from rlm_loop.models.measure import Offsets, measure_offsets
from rlm_loop.models.names import get_model
from rlm_loop.models.regions import Render

_KEEP = 8
_MARKS = re.compile(f"([{START}{SEPARATOR}{END}])")
_LONE = re.compile("[\ud800-\udfff]")


class Tokenized:
    """A model and a tokenizer: the model completes, the tokenizer tells the ledger where the prompt's tokens are.

    `model` is a model or its name.  `tokenizer` is one of

    - the path of a folder with `tokenizer.json` and a chat template (`tokenizer_config.json`, `chat_template.jinja`);
    - a `tokenizers.Tokenizer`, with `template` (the text of a Jinja chat template, or a `ChatTemplate`);
    - a tiktoken `Encoding`; without a `template` the chat is counted in OpenAI's documented form.

    With the model's own tokenizer and template the ledger is exact.  With others, or where the provider adds text of
    its own, the rest is in the ledger as `unattributed`.  Raises `ModelError` where a file or a library is missing.
    """

    def __init__(self, model: str | Model, tokenizer: Any, template: str | ChatTemplate | None = None) -> None:
        self._model = get_model(model)
        given = ChatTemplate(template) if isinstance(template, str) else template
        if isinstance(tokenizer, str | Path):
            given = given or ChatTemplate.from_folder(tokenizer)
            tokenizer = _from_folder(Path(tokenizer))
        self._render: Render = given or openai_chat
        self._trailer = given.trailer if given is not None else END
        if hasattr(tokenizer, "decode_with_offsets"):
            self._offsets = tiktoken_offsets(tokenizer, special=given is not None)
        elif hasattr(tokenizer, "to_str"):
            if given is None:
                raise ModelError("a tokenizer alone does not say what a chat looks like: give the template= as well")
            self._offsets = tokenizers_offsets(tokenizer)
        else:
            kind = type(tokenizer).__name__
            raise ModelError(f"{kind} is no tokenizer: give a folder, a tokenizers.Tokenizer or a tiktoken Encoding")
        self._measured: list[tuple[Prompt, list[Part]]] = []
        self._lock = OwnLock()

    @property
    def interruptible(self) -> bool:
        return bool(getattr(self._model, "interruptible", False))

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def price(self) -> tuple[float, float] | None:
        """The model's own price."""
        return getattr(self._model, "price", None)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The model's reply, with its errors."""
        return self._model.complete(prompt, max_tokens=max_tokens)

    def measure(self, prompt: Prompt) -> list[Part]:
        """The parts of a prompt in reading order, as this tokenizer counts them.

        Raises `RequestRejected` where the chat template refuses the messages.
        """
        with self._lock:
            for seen, parts in self._measured:
                if seen == prompt:
                    return list(parts)
        clean = replace(prompt, messages=tuple(_without_surrogates(m) for m in prompt.messages))
        parts = measure_offsets(clean, clean.to_dict(), self._text, self._offsets, self._trailer)
        with self._lock:
            self._measured = [(prompt, parts), *self._measured[: _KEEP - 1]]
        return list(parts)

    def _text(self, body: Mapping[str, Any]) -> str:
        return _LONE.sub("\ufffd", self._render(body))  # in a tool's schema or in the arguments of a call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet, as while it is copied
            raise AttributeError(name)
        return getattr(self._model, name)

    def __repr__(self) -> str:
        return f"Tokenized({self._model!r})"


def tokenizers_offsets(tokenizer: Any) -> Offsets:
    """Where each token begins, by a `tokenizers.Tokenizer`, which is not changed.

    Special tokens come from the template.  The post-processor is left out: it may cut the space off a token's offset.
    """
    own = type(tokenizer).from_str(tokenizer.to_str())
    own.post_processor = None
    own.no_truncation()
    own.no_padding()

    def offsets(text: str) -> list[int]:
        starts: list[int] = []
        for start, _end in own.encode(text, add_special_tokens=False).offsets:
            starts.append(max(start, starts[-1]) if starts else start)
        return starts

    return offsets


def tiktoken_offsets(encoding: Any, *, special: bool = False) -> Offsets:
    """Where each token begins, by a tiktoken `Encoding`.

    `special`: the text holds the encoding's own special tokens (of a template); otherwise the marks of `openai_chat`
    are one token each, and what looks like a special token is ordinary text, as at the provider.
    """

    def offsets(text: str) -> list[int]:
        if special:
            return list(encoding.decode_with_offsets(encoding.encode(text, allowed_special="all"))[1])
        starts: list[int] = []
        at = 0
        for piece in _MARKS.split(text):
            if _MARKS.fullmatch(piece):
                starts.append(at)
            elif piece:
                starts += [at + start for start in encoding.decode_with_offsets(encoding.encode_ordinary(piece))[1]]
            at += len(piece)
        return starts

    return offsets


def _from_folder(folder: Path) -> Any:
    try:
        library = import_module("tokenizers")
    except ImportError as error:
        raise ModelError(f"a tokenizer.json needs the tokenizers library: {EXTRA}") from error
    try:
        return library.Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises a bare Exception
        raise ModelError(f"{folder / 'tokenizer.json'} cannot be read: {error}; name its folder") from error


def _without_surrogates(message: Message) -> Message:
    """Lone surrogates are no text: a tokenizer would refuse them.  As many characters stand in for them."""
    spans: Sequence[Any] = message.spans
    if not any(_LONE.search(span.text) for span in spans):
        return message
    return replace(message, spans=tuple(replace(span, text=_LONE.sub("\ufffd", span.text)) for span in spans))
