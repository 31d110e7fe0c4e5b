"""The meter from Python: an address to point a framework at, and what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlm_loop.accounting.budget import Budget
from rlm_loop.meter.figures import MeteredCall
from rlm_loop.meter.meter import Meter
from rlm_loop.models.base import Model


class Endpoint(str):
    """The address of a metered model, ending in `/v1`: a text, with the `meter` behind it."""

    meter: Meter

    def __new__(cls, address: str, meter: Meter) -> Endpoint:
        made = super().__new__(cls, address)
        made.meter = meter
        return made

    @property
    def root(self) -> str:
        """The address without `/v1`, as Anthropic's client wants it."""
        return self.removesuffix("/v1")

    def session(self, name: str) -> Endpoint:
        """The address of a session by name, for clients that share a key."""
        return Endpoint(f"{self.root}/s/{name}/v1", self.meter)


@contextmanager
def metered_endpoint(
    model: str | Model | None = None,
    *,
    forward: str | None = None,
    port: int = 0,
    host: str = "127.0.0.1",
    out: str | Path | None = None,
    counter: str | Model | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
    budget: Budget | None = None,
    told: Callable[[MeteredCall], None] | None = None,
) -> Generator[Endpoint]:
    """Serve a model to any framework that speaks the chat API of OpenAI.

        with metered_endpoint(model) as url:
            run_the_framework(base_url=url, api_key="any")
        url.meter.frame()

    With `forward`, the address of a provider, requests go there instead, untouched, and so do the answers as they come;
    Responses, Anthropic's Messages and Gemini are metered too.  `budget` then limits `tokens`, `cost` and `calls`: once
    one of them is reached, the next request gets the API's own error for a spent quota, and is not passed on.

    `port` 0 is a free one.  `out` is a folder for one trace a session (`rlm-loop trace show` reads them).  `counter`
    is another model whose tokenizer counts (a name or a model), for a scripted one.  `known` maps causes to texts
    that are theirs wherever they stand, such as `{"task": [question], "tool_result": outputs}`.  `budget` limits all
    sessions together.  `told` is called with each request as its answer goes out.  A model gets as many requests at
    once as it has slots.
    Raises `OSError` where the port is taken, `ModelNotFound` for a name that is no model's, `ValueError` for a forward
    address that is none, and `TypeError` for a model beside one or no model at all.
    """
    from rlm_loop.meter.forward import ForwardedProvider
    from rlm_loop.meter.server import serve
    from rlm_loop.models import get_model

    if (model is None) == (forward is None):
        raise TypeError("give a model, or the address to forward= to; one of them")
    meter = Meter(
        None if model is None else get_model(model),
        forward=None if forward is None else ForwardedProvider(forward),
        out=out,
        counter=None if counter is None else get_model(counter),
        known=known,
        budget=budget,
        told=told,
    )
    try:
        with serve(meter, host, port) as address:
            yield Endpoint(f"{address}/v1", meter)
    finally:
        meter.close()
