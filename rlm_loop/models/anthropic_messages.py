"""Claude by Anthropic's own API, as light as the chat client: prompt caching is on, and thinking goes back signed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from rlm_loop.messages import Prompt
from rlm_loop.models import anthropic_wire
from rlm_loop.models.base import ModelError
from rlm_loop.models.openai_compatible import OpenAICompatibleModel, Provider, without_password
from rlm_loop.models.streams import Form
from rlm_loop.models.wire import compact, with_options

ANTHROPIC = Provider(
    "anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", ("ANTHROPIC_BASE_URL",), "/v1/models"
)
_VERSION = "2023-06-01"
_MOST = 8192


class AnthropicModel(OpenAICompatibleModel):
    """A model behind the Messages API (`/v1/messages` below `base_url`; Anthropic's own where none is given).

    With `cache` (the default) the prefix that the next request will share is marked for the provider's cache: what is
    read from it costs a tenth, what is written to it a quarter more.  Turn it off where each prompt is asked once.
    Thinking (`options={"thinking": {...}}`) is sent back with its signature, as the provider wants it between calls of
    tools.  This API needs a limit: `max_tokens` is 8,192 where neither the model nor the budget says another.  It has
    no seed.  `temperature` is left to the provider.  Without a `base_url` the price is the one of `known_price`.
    Everything else is as in `OpenAICompatibleModel`; the key is in `ANTHROPIC_API_KEY`, and goes to Anthropic
    and to the address in `ANTHROPIC_BASE_URL`.
    """

    provider = ANTHROPIC
    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True}
    _never_taken = ("seed",)
    _form: ClassVar[Form] = anthropic_wire.EVENTS

    def __init__(self, model: str, base_url: str | None = None, *, cache: bool = True, **more: Any) -> None:
        address = (base_url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC.home).rstrip("/").removesuffix("/v1")
        name = f"anthropic-messages:{model}" + ("" if base_url is None else f"@{without_password(address)}")
        settings: dict[str, Any] = {"name": name, "temperature": None, "seed": None, **more}
        super().__init__(model, address, **settings)
        self.cache = cache
        self._listed_as = None if base_url else f"anthropic/{model}"

    def _headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        body = {"model": self.model, "max_tokens": _MOST, **settings}
        body |= anthropic_wire.to_request(prompt, cache=self.cache)
        answer = self._send("/v1/messages", compact(with_options(body, self._options, "output_config")))
        if not isinstance(answer.get("content"), list):
            raise ModelError(f"{self.name} sent no message but {str(answer)[:120]!r}", self.name, retryable=True)
        return anthropic_wire.as_chat(answer)
