"""An answer that Python will not write out ends a run as any other, with the answer on the outcome and in the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.traces import read

BIG = 10**5000


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("10**5000", BIG),
        ("[-10**5000, {'a': (10**5000,)}]", [-BIG, {"a": (BIG,)}]),
        ("{10**5000: 1}", {BIG: 1}),
        (r"'\ud800'", "\ud800"),
    ],
    ids=["number", "within lists", "key", "surrogate"],
)
def test_the_outcome_is_kept(tmp_path: Path, code: str, value: Any) -> None:
    model = ScriptedModel([f"```python\nfinal_answer({code})\n```"])
    outcome = ToolLoopAgent(model, repl="plain").run("What is it?", trace=tmp_path / "t.jsonl")
    assert outcome.stop == "answered"
    assert outcome.answer == value
    assert repr(outcome)
    assert str(outcome)
    assert outcome._repr_html_()  # pyright: ignore[reportPrivateUsage]
    end = read(tmp_path / "t.jsonl").end
    assert end is not None
    assert end["stop"] == "answered"
