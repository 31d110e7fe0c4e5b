"""Rows of two arms with chosen outcomes, for comparisons whose figures are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlm_loop.study import Analysis, Results

#: What a pair came to: resolved by the arm and by the baseline ("?": the arm crashed, "!": the machine did,
#: "-": not run, "u": not judged).
Pair = tuple[str, str]


def paired(
    pairs: Sequence[Pair], *, tokens: Any = None, seeds: int = 1, facts: Any = None, model: str = "local:m"
) -> Results:
    """A study that declared a margin of 3 points.  `pairs` are (lean, base), one task each unless there are seeds;
    `tokens` are alike, `facts` one mapping a pair."""
    rows: list[dict[str, Any]] = []
    for i, outcome in enumerate(pairs):
        of = tokens[i] if tokens else (50 + i, 100 + i)
        for arm, word, used in zip(("base", "lean"), outcome[::-1], of[::-1], strict=True):
            if word == "-":
                continue
            error = {"?": "Boom", "!": "MemoryError"}.get(word)
            resolved = {"y": True, "n": False, "?": False, "!": False, "u": None}[word]
            started = f"2030-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}"
            zero = ("cost", "new_tokens", "scaffold_tokens", "lenient_calls", "malformed_turns", "tool_failures")
            row = {
                "arm": arm, "model": model, "suite": "s", "task": f"t{i // seeds}", "seed": i % seeds, "level": 1,
                "resolved": resolved, "error": error, "answered": True, "stop": "answer", "started": started,
                "input_tokens": None if error else used, "output_tokens": 10, "steps": 2, "seconds": 3.0 + i % 3,
                "tool_seconds": [], "trace": "", **dict.fromkeys((*zero, "cell_errors", "actions"), 0),
            }  # fmt: skip
            rows.append(row | {"facts": dict(facts[i])} if facts else row)
    lock = {"name": "made", "analysis": Analysis("base", margin=0.03).locked(), "seeds": list(range(seeds))}
    return Results(rows, {**lock, "sessions": [{"arms": ["base", "lean"]}]})
