"""Dialects around dialects: what the outermost is asked for, the innermost can answer."""

from __future__ import annotations

import pytest

from rlm_loop.dialects.attempt_context import AttemptContext
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.dialects.injectors import Injected, Nudge
from rlm_loop.dialects.presets import preset
from rlm_loop.dialects.wrapped import Wrapped


@pytest.mark.parametrize(
    "around",
    [
        Wrapped,
        lambda inner: AttemptContext(text="the last attempt failed").around(inner),
        lambda inner: Injected(inner, (Nudge(),)),
        lambda inner: AttemptContext(text="again").around(Injected(inner, (Nudge(),))),
    ],
)
def test_a_wrapper_hides_nothing_of_what_is_inside(around: type[Wrapped]) -> None:
    inner: Dialect = Injected(CodeBlocks(), preset("rlms", steps=5))
    assert getattr(inner, "wants_variables", False)  # rlms tells of the REPL's variables
    made = around(inner)
    assert (made.action_mode, made.observation_cap) == (inner.action_mode, getattr(inner, "observation_cap", None))
    assert made.wants_variables
    rewriting = Injected(CodeBlocks(), preset("dspy-history"))
    assert rewriting.rewrites
    assert around(rewriting).rewrites == rewriting.rewrites
