"""Any endpoint that speaks the chat-completions API: vLLM, llama-server, a gateway, OpenAI itself.

A light client of our own, because a call through it costs about a millisecond on the loopback where a
general one costs 30 to 45 (see `benchmarks/`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import wire
from rlm_loop.models.base import AuthenticationFailed, ModelError, ModelNotFound, ModelUnreachable, no_text
from rlm_loop.models.http import BadAddress, BrokenOff, Http, Lost, Response, TooLate
from rlm_loop.models.remote import RemoteModel
from rlm_loop.models.streams import CHAT, Form, body_of, fault_of, hearing
from rlm_loop.traces.redact import remember

#: The environment variable of OpenAI's key, and where that key may go without being told.
_KEY, _HOME, _ADDRESSES = "OPENAI_API_KEY", "https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")


class OpenAICompatibleModel(RemoteModel):
    """A model behind a chat-completions endpoint.

    `base_url` is what stands before `/chat/completions`, usually ending in `/v1`.  The key is `api_key`, else
    the environment variable `key_variable`, else none is sent.  Without either, `OPENAI_API_KEY` is sent to OpenAI and
    to the address in `OPENAI_BASE_URL`, and nowhere else.  `options` are added to each request as they are.  `price` is
    a `Price` (with its discounts for what a cache holds), or US dollars per input and output token.  `more` are the
    settings of `RemoteModel`.
    """

    #: Reads a reply in events.
    _form: ClassVar[Form] = CHAT

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        key_variable: str | None = None,
        price: Price | tuple[float, float] | None = None,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
        seed: int | None = 0,
        **more: Any,
    ) -> None:
        self.model = model
        self.base_url = base_url.rstrip("/")
        self._place = without_password(self.base_url)
        super().__init__(name or f"openai-compatible:{model}@{self._place}", options=options or {}, seed=seed, **more)
        self._key = api_key
        self._variable = key_variable or _KEY
        self._trusted = key_variable is not None or _may_have_key(self.base_url)
        remember(api_key or os.environ.get(self._variable))  # the variable may have any name
        self._price = Price(price[0] * 1e6, price[1] * 1e6) if isinstance(price, tuple) else price

    def _full_price(self) -> Price | None:
        return self._price

    def _reply(self, answer: Any, seconds: float, waited: float) -> Reply:
        reply, price = super()._reply(answer, seconds, waited), self._full_price()
        return reply if price is None else wire.priced(reply, price)

    def _known_key(self) -> str | None:
        return self._key or (os.environ.get(self._variable) if self._trusted else None)

    def _http(self) -> Http:
        key = self._known_key()
        return Http(self.base_url, headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=self.timeout)

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the server answers, in the shape of the chat API."""
        answer = self._send("/chat/completions", prompt.to_json({"model": self.model, **settings, **self._options}))
        if not answer.get("choices"):  # an error that was sent as 200
            raise ModelError(f"{self.name} sent no completion but {str(answer)[:120]!r}", self.name, retryable=True)
        return answer

    def _send(self, path: str, body: str) -> Mapping[str, Any]:
        """Return the object that the server answers with."""
        try:
            response = self._http().post(path, body, hearing(self._form))
            if response.status != 200:
                raise self._refusal(response)
            answer = body_of(response, self._form)
        except UnicodeEncodeError as error:
            raise no_text(self.name) from error
        except (BadAddress, Lost, TooLate) as error:
            raise self._unreachable(error) from error
        if (fault := fault_of(response, answer)) is not None:
            raise self._refusal(fault)
        if not isinstance(answer, dict):  # a gateway's page
            raise ModelError(f"{self.name} sent no completion but {response.text[:120]!r}", self.name, retryable=True)
        return cast("dict[str, Any]", answer)

    def _unreachable(self, error: BadAddress | Lost | TooLate) -> ModelUnreachable:
        if isinstance(error, BadAddress):
            return ModelUnreachable(f"{self._place} is no address: it begins with http:// or https://")
        said = f"cannot be reached ({error}): is the server running?"
        if isinstance(error, TooLate):
            said = f"did not answer within {self.timeout:g} s: is it overloaded? raise timeout"
        elif isinstance(error, BrokenOff):
            said = f"broke off the connection in the middle of its reply ({error})"
        return ModelUnreachable(f"{self._place} {said}", self.name, retryable=True)

    def _refusal(self, response: Response) -> ModelError:
        said, parameter = _reason(response)
        if response.status in (401, 403):
            return AuthenticationFailed(f"{self._place} {self._about_the_key()} ({said})", self.name)
        if response.status == 404:
            return ModelNotFound(f"{self.model} is not at {self._place}{self._listed()} ({said})", self.name)
        after = response.headers.get("retry-after")
        return self._refused(response.status, said, response.text, after=after, parameter=parameter)

    def _about_the_key(self) -> str:
        if self._known_key():
            return f"refused the key in {'api_key' if self._key else f'the environment variable {self._variable}'}"
        if self._trusted:
            return f"needs a key: set {self._variable}"
        own = f"{self._variable}, which is for {_host(_HOME)} alone"
        return f"needs a key: give api_key= or key_variable=, or set {_ADDRESSES[0]} to this address as well as {own}"

    def _listed(self) -> str:
        """Say what the server has, if it lists that."""
        try:
            entries = self._http().get("/models", timeout=5.0).json()["data"]
            names = sorted(str(entry["id"]) for entry in entries)
        except (Lost, TooLate, ValueError, KeyError, TypeError):
            hint = "" if self.base_url.endswith("/v1") else f" and the address (is it {self._place}/v1?)"
            return f": check the model's name{hint}"
        return f": it has {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}" if names else ": it has no models"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {self._place!r})"


def _reason(response: Response) -> tuple[str, str | None]:
    """Return the server's reason in one short line, and the parameter that it names, where it does."""
    text, parameter = response.text, None
    try:
        body: Any = response.json()
        error: Any = body.get("error", body)
        text = str(error.get("message", error) if isinstance(error, dict) else error)
        parameter = str(error["param"]) if error["param"] else None
    except (ValueError, AttributeError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:200] or response.reason, parameter


def _may_have_key(address: str) -> bool:
    """Return whether OpenAI's key may go to this address: OpenAI's own, or one that the user named for it."""
    return _host(address) in {_host(url) for url in (_HOME, *filter(None, map(os.environ.get, _ADDRESSES)))}


def _host(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2].lower()


def without_password(address: str) -> str:
    """Return an address without the user and password in it."""
    scheme, sep, place = address.partition("://")
    return f"{scheme}{sep}{place.rpartition('@')[2]}" if "@" in place else address
