"""Every provider that LiteLLM knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rlm_loop.accounting.prices import Price, known_price
from rlm_loop.errors import install_line
from rlm_loop.messages import Reply
from rlm_loop.models.base import AuthenticationFailed, ModelError, ModelNotFound
from rlm_loop.models.remote import RemoteModel
from rlm_loop.models.wire import to_reply
from rlm_loop.traces.redact import redact, remember


class LiteLLMModel(RemoteModel):
    """A model by its LiteLLM name, as `openai/gpt-5-nano` or `anthropic/claude-haiku-4-5`.

    Keys come from the provider's usual environment variables, or as `api_key`.  `temperature`, `seed`, `max_tokens`,
    `timeout` and `retry` are those of `RemoteModel`; retries are ours, so that the time they take is in `Reply.waited`.
    Other `options` go to `litellm.completion` as they are (`api_base`, `reasoning_effort` ...).  Replies come whole.
    """

    streams = False

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        self._key_hint = f"give api_key=, or set {name.partition('/')[0].upper()}_API_KEY"
        remember(self._options.get("api_key"))

    @property
    def window(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The most tokens of a prompt from LiteLLM's own table, `None` where that does not know."""
        try:
            return _litellm().get_model_info(self.name).get("max_input_tokens")
        except Exception:  # LiteLLM is not installed, or says "not in the table" with a bare Exception
            return None

    @property
    def full_price(self) -> Price | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The price in the tables of genai-prices."""
        return known_price(self.name)

    def _ask(self, request: Mapping[str, Any]) -> Reply:
        try:
            litellm = _litellm()
        except ImportError as error:
            raise ModelError(f"this model needs LiteLLM: {install_line('litellm')}") from error
        given = {"api_key", "api_base", "base_url", "mock_response"} & self._options.keys()
        # before the call: some providers' clients report a missing key as a server error
        if not given and (missing := litellm.validate_environment(self.name).get("missing_keys")):
            raise AuthenticationFailed(f"{self.name} needs a key: set {' or '.join(missing)}", self.name)
        sent = {**request, "timeout": self.timeout, **self._options}
        try:
            answer = litellm.completion(model=self.name, num_retries=0, max_retries=0, **sent)
            body: dict[str, Any] = answer.model_dump()
            used: dict[str, Any] = body.get("usage") or {}
            if not used.get("prompt_tokens") and not used.get("completion_tokens"):
                body["usage"] = None  # LiteLLM says zero where the provider said nothing
            message = (body.get("choices") or [{}])[0].get("message") or {}
            if message.get("thinking_blocks") and used.get("completion_tokens_details"):
                used["completion_tokens_details"]["reasoning_tokens"] = None  # LiteLLM counted the shown text itself
        except Exception as error:  # sorted by status below
            # a notebook keeps what it shows of a cause: an address with its key, say
            raise self._translated(error) from (error if redact(str(error)) == str(error) else None)
        return to_reply(body, model=self.name)

    def _translated(self, error: Exception) -> ModelError:
        text, name = str(getattr(error, "message", "") or error), self.name
        said = " ".join(text.split())[:240]
        if "LLM Provider NOT provided" in said:
            return ModelNotFound(f"LiteLLM knows no provider for {name!r}", name)
        if isinstance(status := getattr(error, "status_code", None), int):
            after = (getattr(error, "litellm_response_headers", None) or {}).get("retry-after")
            body: Any = getattr(error, "body", None)
            parameter = body.get("param") if isinstance(body, dict) else None
            return self._refused(status, said, text, after=after, parameter=parameter)
        # it stumbled over the answer, or over an option
        return ModelError(f"{name} failed within LiteLLM ({type(error).__name__}: {said}): check its options", name)


def _litellm() -> Any:
    """Return LiteLLM, which then prints no hints on stdout.  Raises `ImportError` without it."""
    # Otherwise the import asks the network for a price table, which takes seconds where there is none.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    return litellm
