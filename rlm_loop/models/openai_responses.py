"""OpenAI's Responses API, as light as the chat client: nothing is stored there, and reasoning goes back encrypted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from rlm_loop.messages import Prompt
from rlm_loop.models import responses_wire
from rlm_loop.models.base import ModelError, RequestRejected
from rlm_loop.models.openai_compatible import OPENAI, OpenAICompatibleModel, without_password
from rlm_loop.models.streams import Form
from rlm_loop.models.wire import compact, with_options

_ENCRYPTED = "reasoning.encrypted_content"


class ResponsesModel(OpenAICompatibleModel):
    """A model behind the Responses API (`/responses` below `base_url`; OpenAI's own where none is given).

    Each request holds the whole conversation (`store` is false), and asks for the reasoning in encrypted form, which
    goes back with the next one: so a reasoning model does not begin anew after each call of a tool.  A model that has
    no reasoning refuses that once, and is asked without from then on.  The provider caches prompts by itself.  This
    API has no stop strings and no seed.  Without a `base_url` the price is the one of `known_price`.  Everything else
    is as in `OpenAICompatibleModel`.
    """

    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True}
    _never_taken = ("stop", "seed")
    _form: ClassVar[Form] = responses_wire.EVENTS

    def __init__(self, model: str, base_url: str | None = None, **more: Any) -> None:
        address = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI.home
        name = f"openai-responses:{model}" + ("" if base_url is None else f"@{without_password(address.rstrip('/'))}")
        settings: dict[str, Any] = {"name": name, "seed": None, **more}
        super().__init__(model, address, **settings)
        self._listed_as = None if base_url else f"openai/{model}"
        self._encrypted = True

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        body: dict[str, Any] = {"model": self.model, "store": False}
        body |= {"max_output_tokens" if k == "max_tokens" else k: v for k, v in settings.items()}
        body |= responses_wire.to_request(prompt)
        encrypted = self._encrypted
        if encrypted:
            body["include"] = [_ENCRYPTED]
        try:
            answer = self._send("/responses", compact(with_options(body, self._options, "text")))
        except RequestRejected as error:
            if not encrypted or "encrypted" not in error.said.lower():
                raise
            self._encrypted = False
            return self._ask(prompt, settings)
        if not isinstance(answer.get("output"), list) or answer.get("error"):
            raise ModelError(f"{self.name} sent no response but {str(answer)[:120]!r}", self.name, retryable=True)
        return responses_wire.as_chat(answer)
