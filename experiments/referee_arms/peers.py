"""smolagents' `CodeAgent` and `ToolCallingAgent` on the tasks of `study.py`, as a study: rows have the same fields.

rlm-loop study run experiments/referee_arms/peers.py --jobs 4 --set slots=4 --out runs/referee_arms/peers
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rlm_loop.models import LocalModel
from rlm_loop.study import Study

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.referee_arms.peer_agent import PeerAgent
from experiments.referee_arms.study import tasks

#: The arms by their contender in `experiments/peers`.
PEERS = {"smolagents-code": "smolagents_code", "smolagents-tools": "smolagents_tools"}


def study(
    model: Any = "local", seed: int = 0, steps: int = 5, max_tokens: int = 500, slots: int = 1, window: int = 16384
) -> Study:
    """The grid; the window is larger than ours, since their system texts are (2,000 tokens and more)."""
    local = LocalModel(model, slots=slots, context_size=window, seed=seed) if isinstance(model, str) else model
    return Study(
        name="referee-arms-peers",
        arms={arm: PeerAgent(peer, steps=steps, max_tokens=max_tokens) for arm, peer in PEERS.items()},
        tasks=tasks(),
        seeds=(seed,),
        model=local,
        differs=("other",),
        question="What do other frameworks' loops resolve on the same tasks with the same model?",
    )
