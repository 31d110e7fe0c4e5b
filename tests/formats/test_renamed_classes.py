"""Names of 0.1 that classes of this package gave to another one still work, and say what they are called now."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "then", "now"),
    [
        ("rlm_loop.formats.traces", "Agent", "AgentConversation"),
        ("rlm_loop.formats.traces", "Conversation", "RunConversation"),
        ("rlm_loop.agents.attempts", "Diagnosis", "PatchDiagnosis"),
        ("rlm_loop.models.retry", "Retry", "RetryPolicy"),
    ],
)
def test_an_old_name_still_works_and_warns(module: str, then: str, now: str) -> None:
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"{then} is {now}"):
        assert getattr(found, then) is getattr(found, now)
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = found.NoSuchName
