"""Made-up results that have everything a figure can show: causes, factors, a crash, several models, a comparison."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pandas as pd
from made_rows import made_results

from rlm_loop.study import Results


def full(tasks: int = 4, arms: Mapping[str, Any] | None = None) -> Results:
    """`made_results` with the tokens of every row charged to causes that sum to them."""
    made = made_results(tasks, seed=3, **({"arms": dict(arms)} if arms else {}))
    for row in made.rows:
        whole = row["input_tokens"]
        parts = {"template": whole // 10, "system": whole // 5, "task": whole // 4}
        if "react" in row["arm"]:
            parts["scaffold:thought"] = whole // 6
        row["by_cause"] = {**parts, "assistant": whole - sum(parts.values())}  # type: ignore[index]
    return made


def crossed(tasks: int = 6) -> pd.DataFrame:
    """Two base arms by three temperatures and two depths, as `results.frame()` of such a study."""
    draw = random.Random(7)
    rows: list[dict[str, Any]] = []
    for base, chance in (("code", 0.7), ("lean", 0.4)):
        for heat in (0.8, 0.0, 0.4):
            for depth in (0, 1):
                for number in range(tasks):
                    tokens = 400 + 300 * depth + draw.randint(0, 200)
                    rows.append(
                        {
                            "arm": f"{base}[temperature={heat}, max_depth={depth}]",
                            "arm_base": base,
                            "factors": {"temperature": heat, "max_depth": depth},
                            "model": "m",
                            "suite": "s",
                            "task": f"t{number}",
                            "seed": 0,
                            "resolved": draw.random() < chance - 0.3 * heat,
                            "input_tokens": tokens,
                            "output_tokens": tokens // 4,
                        }
                    )
    return pd.DataFrame(rows)


def compared() -> pd.DataFrame:
    """The columns of `Comparison.frame()` that are drawn."""
    rows = [
        ("lean", "resolved", "difference", 0.042, -0.010, 0.094),
        ("code", "resolved", "difference", 0.140, 0.060, 0.220),
        ("lean", "input_tokens", "ratio", 0.59, 0.56, 0.62),
        ("code", "input_tokens", "ratio", 1.25, 1.10, 1.40),
        ("code", "cost", "ratio", None, None, None),
    ]
    names = ("arm", "measure", "effect", "estimate", "low", "high")
    frame = pd.DataFrame(rows, columns=list(names))
    return frame.assign(model="m", baseline="react-text", pairs=108, missing=3, policy="worst")


def tree(children: int = 3, *, small: int = 0, cost: float | None = 0.01) -> pd.DataFrame:
    """A root with so many sub-agents, each with one completion below it, and `small` completions of its own."""
    rows: list[dict[str, Any]] = [{"node": "0", "kind": "agent", "input_tokens": 500, "output_tokens": 100}]
    for n in range(1, children + 1):
        rows.append({"node": f"0.{n}", "kind": "agent", "input_tokens": 200, "output_tokens": 50})
        below = {"node": f"0.{n}.1", "kind": "completion", "input_tokens": 80, "output_tokens": 20, "ok": n != 2}
        rows.append(below)
    for n in range(children + 1, children + small + 1):
        rows.append({"node": f"0.{n}", "kind": "completion", "input_tokens": 2, "output_tokens": 0})
    rest = {"ok": True, "calls": 1, "cost": cost, "model_seconds": 0.5}
    return pd.DataFrame([{**rest, **row} for row in rows])
