"""Any endpoint that speaks the chat-completions API: vLLM, llama-server, a gateway, OpenAI itself.

A light client of our own, because a call through it costs about a millisecond on the loopback where a
general one costs 30 to 45 (see `benchmarks/`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Reply
from rlm_loop.models.base import ModelError, ModelUnreachable, RequestRejected
from rlm_loop.models.http import Answer, Http, Lost
from rlm_loop.models.remote import RemoteModel
from rlm_loop.models.streams import Event, events_of, hearing, joined
from rlm_loop.models.wire import ODD, to_reply
from rlm_loop.traces.received import parse
from rlm_loop.traces.redact import remember

#: The environment variable of OpenAI's key, where that key may go without being told, and what names another address.
_KEY, _HOME, _ADDRESS = "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL"


class OpenAICompatibleModel(RemoteModel):
    """A model behind a chat-completions endpoint.

    `base_url` is what stands before `/chat/completions`, usually ending in `/v1`.  The key is `api_key`, else
    the environment variable `key_variable`, else none is sent.  Without either, `OPENAI_API_KEY` is sent to OpenAI and
    to the address in `OPENAI_BASE_URL`, and nowhere else.  `price` is what usage costs where
    the server does not say.  `more` are the settings of `RemoteModel`.
    """

    #: An answer is one event or more, a line of JSON each, streamed or not.
    _json_lines = False

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        key_variable: str | None = None,
        price: Price | None = None,
        name: str | None = None,
        seed: int | None = 0,
        **more: Any,
    ) -> None:
        self.model = model
        self.base_url = base_url.rstrip("/")
        super().__init__(name or f"openai-compatible:{model}@{self.base_url}", seed=seed, **more)
        homes = {urlsplit(url).netloc.lower() for url in (_HOME, os.environ.get(_ADDRESS, "")) if url}
        known = _KEY if urlsplit(base_url).netloc.lower() in homes else ""
        self._key, self._variable = api_key, key_variable or known
        where = f", or set {self._variable}" if self._variable else f" or key_variable=: {_KEY} goes to OpenAI only"
        self._key_hint = f"give api_key={where}"
        remember(api_key or os.environ.get(self._variable))  # the variable may have any name
        self.full_price = price
        Http(self.base_url, headers={}, timeout=None)  # says what is no address

    def _http(self, timeout: float | None) -> Http:
        key = self._key or os.environ.get(self._variable)
        return Http(self.base_url, headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=timeout)

    def _ask(self, request: Mapping[str, Any]) -> Reply:
        body = {"model": self.model, **request, **self._options}
        return to_reply(self.send("/chat/completions", body), model=self.name)

    def send(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object that the server answers with, in the shape of the chat API."""
        try:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False)
            answer = self._http(self.timeout).send(path, text, hearing(self._chunk_of))
            read = self._read(answer)
        except UnicodeEncodeError as error:
            said = "the prompt holds a lone surrogate, which is no valid text: decode the data with errors='replace'"
            raise RequestRejected(said, self.name) from error
        except Lost as error:
            said = f"gave no reply ({error}): is the server running, and timeout={self.timeout} long enough?"
            raise ModelUnreachable(f"{self.base_url} {said}", self.name, retryable=True) from error
        told = read.get("error") if isinstance(read, dict) else None
        if answer.status != 200 or told:  # some send an error as 200, or among the events
            raise self._refusal(answer, told or read)
        if not isinstance(read, dict):  # a gateway's page
            raise ModelError(f"{self.name} sent no completion but {answer.text[:120]!r}", self.name, retryable=True)
        return cast("dict[str, Any]", read)

    def _read(self, answer: Answer) -> Any:
        """Return the body of an answer, `None` for what is no JSON.  Raises `Lost` for a stream that broke off."""
        try:
            in_events = self._json_lines or "event-stream" in answer.headers.get("Content-Type", "")
            if not in_events or answer.status != 200:
                return parse(answer.data)
            body = joined(map(self._chunk_of, events_of(answer.data)))
        except ODD:
            return None
        if not body.get("error") and body["choices"][0]["finish_reason"] is None:
            raise Lost("the stream ended before the reply did")
        return body

    def _chunk_of(self, event: Event) -> Event:
        """Return an event of a stream as a chunk of a chat completion."""
        return event

    def _refusal(self, answer: Answer, told: Any) -> ModelError:
        fields: Mapping[str, Any] = told if isinstance(told, dict) else {"message": told or answer.text}
        said = " ".join(str(fields.get("message") or fields).split())[:200] or answer.reason
        status, code, parameter = answer.status, fields.get("code"), fields.get("param")
        if status == 200:
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
        after = answer.headers.get("Retry-After")
        return self._refused(status, said, answer.text, after=after, parameter=str(parameter) if parameter else None)
