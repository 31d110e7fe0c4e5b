"""A recorded run is driven again by today's loop, or goes on live from one of its turns.

>>> from rlm_loop.replay import fork, replay
>>> print(replay("run.jsonl"))  # doctest: +SKIP
>>> fork("run.jsonl", at=3, model="ollama/qwen3-coder:30b").answer  # doctest: +SKIP
"""

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.replay.fork import fork
from rlm_loop.replay.recorded import ReplayError
from rlm_loop.replay.replay import Difference, Replayed, replay

__all__ = ["Difference", "ReplayError", "Replayed", "fork", "ledger_of", "replay"]
