"""The meter: an address on the loopback, in front of any model or provider, that charges every token to a cause."""

from __future__ import annotations

from rlm_loop.meter.arm import FunctionArm, arm
from rlm_loop.meter.endpoint import Endpoint, metered_endpoint
from rlm_loop.meter.figures import Branch, Figures, MeteredCall, read_meter
from rlm_loop.meter.meter import Meter

__all__ = [
    "Branch",
    "Endpoint",
    "Figures",
    "FunctionArm",
    "Meter",
    "MeteredCall",
    "arm",
    "metered_endpoint",
    "read_meter",
]
