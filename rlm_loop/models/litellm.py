"""Every provider that LiteLLM knows."""

from __future__ import annotations

import difflib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any

from rlm_loop.accounting.prices import Price, known_price
from rlm_loop.accounting.scope import call_scope
from rlm_loop.errors import install_line
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import wire
from rlm_loop.models.base import (
    AuthenticationFailed,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    RequestRejected,
    RetryPolicy,
)
from rlm_loop.models.remote import RemoteModel, retry_after
from rlm_loop.models.streams import CHAT, highest, joined, tell_of
from rlm_loop.traces.redact import redact, remember

_importing = threading.Lock()


def _litellm() -> Any:
    with _importing:
        # Otherwise the import asks the network for a price table, which takes seconds where there is none.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        try:
            import litellm
        except ImportError as error:
            raise ModelError(f"this model needs LiteLLM: {install_line('litellm')}") from error
        litellm.suppress_debug_info = True  # it prints advertisements for its debugger on stdout
        return litellm


class LiteLLMModel(RemoteModel):
    """A model by its LiteLLM name, as `openai/gpt-5-nano` or `anthropic/claude-haiku-4-5`.

    Keys come from the provider's usual environment variables, or as `api_key`.  `temperature`, `seed`, `max_tokens`,
    `timeout` and `retry` are those of `RemoteModel`; retries are ours, so that the time they take is in `Reply.waited`.
    Other `options` go to `litellm.completion` as they are (`api_base`, `reasoning_effort` ...).
    """

    def __init__(
        self,
        name: str,
        *,
        temperature: float | None = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        timeout: float = 600.0,
        retry: RetryPolicy | None = None,
        **options: Any,
    ) -> None:
        own: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens, "timeout": timeout}
        super().__init__(name, retry=retry, options=options, **own)
        remember(options.get("api_key"))
        self._checked = False

    @property
    def window(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The most tokens of a prompt from LiteLLM's own table, `None` where that does not know."""
        try:
            return _litellm().get_model_info(self.name).get("max_input_tokens")
        except ModelError:
            raise
        except Exception:  # LiteLLM says "not in the table" with a bare Exception
            return None

    def _full_price(self) -> Price | None:
        return known_price(self.name)

    def _reply(self, answer: Any, seconds: float, waited: float) -> Reply:
        litellm, cost = _litellm(), None
        try:
            body = _stated(answer.model_dump())
        except Exception as error:  # its objects hold whatever the provider sent
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise ModelError(f"{self.name} sent no completion ({said})", self.name) from error
        if body["usage"] is not None:
            with suppress(Exception):  # LiteLLM says "not in the table" with a bare Exception
                cost = float(litellm.completion_cost(completion_response=answer))
        return wire.to_reply(body, model=self.name, seconds=seconds, waited=waited, cost=cost)

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Any:
        litellm = _litellm()
        self._check_keys(litellm)
        request = {**_passable(prompt.to_dict(), self.name), **settings, "timeout": self.timeout, **self._options}
        try:
            answer = litellm.completion(model=self.name, num_retries=0, max_retries=0, **request)
            return answer if isinstance(answer, litellm.ModelResponse) else self._put_together(litellm, answer)
        except ModelError:
            raise
        except Exception as error:  # sorted by class below
            # a notebook keeps what it shows of a cause: an address with its key, say
            raise self._translated(litellm, error) from (error if redact(str(error)) == str(error) else None)

    def _put_together(self, litellm: Any, chunks: Any) -> Any:
        """Return the completion that comes in chunks; where nobody waits for it any more, close the connection.

        LiteLLM leaves out refusals, and makes up a usage and an end where the provider sent none: these are read from
        what it reads.
        """
        scope, events, sent = call_scope.get(), list[dict[str, Any]](), list[dict[str, Any]]()
        stream = chunks.completion_stream

        def read() -> Iterator[Any]:
            for item in stream:
                with suppress(Exception):
                    sent.append(dict(item) if isinstance(item, dict) else item.model_dump())
                yield item

        if stream is not None:  # else it begins with the first chunk
            chunks.completion_stream = read()
        try:
            for chunk in chunks:
                if scope is not None:
                    scope.check()
                events.append(chunk.model_dump())
                tell_of(events[-1], CHAT)
        finally:
            _close(stream if stream is not None else chunks.completion_stream)
        if not chunks.received_finish_reason:
            raise ModelUnreachable(f"{self.name} broke off in the middle of its reply", self.name, True)
        body = joined(events)
        if stream is not None:
            body["usage"] = reduce(highest, (one.get("usage") for one in sent), None)
            if refusal := joined(one for one in sent if "text" not in one)["choices"][0]["message"].get("refusal"):
                body["choices"][0]["message"]["provider_specific_fields"] = {"refusal": refusal}
        return litellm.ModelResponse(**body)

    def _check_keys(self, litellm: Any) -> None:
        """Say which variable is missing before the call: some providers' clients report it as a server error."""
        if self._checked or {"api_key", "api_base", "base_url", "mock_response"} & self._options.keys():
            return
        missing = litellm.validate_environment(self.name).get("missing_keys") or []
        if missing:
            raise AuthenticationFailed(f"{self.name} needs a key: set {' or '.join(missing)}", self.name)
        self._checked = True

    def _translated(self, litellm: Any, error: Exception) -> ModelError:
        text, name = str(getattr(error, "message", "") or error), self.name
        said = " ".join(text.split())[:240]
        if isinstance(error, litellm.AuthenticationError | litellm.PermissionDeniedError):
            where = "api_key" if "api_key" in self._options else f"{name.partition('/')[0].upper()}_API_KEY"
            return AuthenticationFailed(f"{name} refused the key in {where}: {said}", name)
        if isinstance(error, litellm.NotFoundError):
            return ModelNotFound(f"{name} does not exist at its provider: {said}", name)
        if isinstance(error, litellm.BadRequestError) and "LLM Provider NOT provided" in said:
            provider, _slash, bare = name.partition("/")
            near = [f"{p}/{bare}" for p in difflib.get_close_matches(provider, litellm.models_by_provider, 2, 0.6)]
            hint = f" (near: {', '.join(near)})" if near else ""
            return ModelNotFound(f"LiteLLM knows no provider for {name!r}{hint}", name)
        if isinstance(error, litellm.ContextWindowExceededError):
            return RequestRejected(f"the prompt does not fit the window of {name}: {said}", name)
        after = (getattr(error, "litellm_response_headers", None) or {}).get("retry-after")
        if isinstance(error, litellm.Timeout | litellm.APIConnectionError):
            place = self._options.get("api_base") or self._options.get("base_url") or "its provider"
            why = f"{place} cannot be reached for {name}: {said}"
            if isinstance(error, litellm.Timeout):
                why = f"{name} did not answer in {self.timeout:g} s"
            lost = ModelUnreachable(why, name, True)
            lost.retry_after = retry_after(after)
            return lost
        faults = (litellm.APIError, litellm.InternalServerError, litellm.ServiceUnavailableError)
        if isinstance(error, (litellm.BadRequestError, litellm.RateLimitError, *faults)):
            status = int(getattr(error, "status_code", 500))
            body: Any = getattr(error, "body", None)
            parameter = body.get("param") if isinstance(body, dict) else None
            status = max(status, 500) if isinstance(error, faults) else status
            return self._refused(status, said, text, after=after, parameter=parameter)
        # it stumbled over the answer, or over an option
        return ModelError(f"{name} failed within LiteLLM ({type(error).__name__}: {said}): check its options", name)

    def __repr__(self) -> str:
        return f"LiteLLMModel({self.name!r})"


def _close(stream: Any) -> None:
    """Close a stream that LiteLLM read, and the response in it, of which LiteLLM's own readers have no `close`.

    They stop before the response does.  Left to the garbage collector, it might be closed while a further request holds
    the lock of the connections, in the same thread, which then waits for itself without end.
    """
    inside = ("streaming_response", "response_iterator")
    parts: list[Any] = [stream, *(getattr(stream, name, None) for name in inside)]
    for part in parts:
        with suppress(Exception):
            part.close()


def _stated(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer without the figures that LiteLLM put where the provider said nothing.

    Where there is no usage it says zero tokens, and where thinking is shown but not counted it counts the text itself.
    """
    usage: dict[str, Any] = body.get("usage") or {}
    if not usage.get("prompt_tokens") and not usage.get("completion_tokens"):
        return {**body, "usage": None}
    choices: list[Any] = body.get("choices") or [{}]
    if (choices[0].get("message") or {}).get("thinking_blocks") and usage.get("completion_tokens_details"):
        usage = {**usage, "completion_tokens_details": {**usage["completion_tokens_details"], "reasoning_tokens": None}}
    return {**body, "usage": usage}


def _passable(request: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the request without what LiteLLM passes on and a provider refuses.

    A text of no characters is none: beside calls it is left out, and so is a reply that was nothing else.  Google
    refuses an object without properties, so a function that takes nothing has no parameters there.
    """
    said = [m for m in request["messages"] if m["role"] != "assistant" or m["content"] or "tool_calls" in m]
    request["messages"] = [{**m, "content": m["content"] or None} if "tool_calls" in m else m for m in said]
    for tool in request.get("tools", ()) if name.startswith(("gemini/", "vertex_ai/")) else ():
        if not (tool["function"].get("parameters") or {}).get("properties"):
            tool["function"] = {k: v for k, v in tool["function"].items() if k != "parameters"}
    return request
