"""Injectors by name: what mellea, rlms, smolagents, dspy, inspect, fast-rlm and the project's own seed add.

    ToolLoopAgent(injectors=preset("rlms", steps=12))
    LeanAgent(injectors=(sized(preset("mellea-thought")[0], 52), every(3, Nudge())))

The bytes are those of the packages named in `PRESETS` (see `peer_injectors`).  What the texts are joined with is ours:
a line break, in the last message where that is the user's, else in a message of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlm_loop.dialects.doses import every, sized
from rlm_loop.dialects.injectors import Injector, Nudge, ThoughtPrompt, Told
from rlm_loop.dialects.peer_injectors import (
    SOURCES,
    TEXTS,
    DspyIteration,
    FastRlmBanner,
    FastRlmNoCode,
    InspectContinue,
    MelleaInitiator,
    PeerSource,
    RlmsTurnCounter,
    RlmsVariables,
    SmolagentsEcho,
    SmolagentsRetry,
)
from rlm_loop.dialects.rewriting import DspyHistory, LatestOnly

__all__ = ["PRESETS", "Preset", "every", "preset", "sized"]


@dataclass(frozen=True)
class Preset:
    """One or more injectors under a name.

    `make` makes them for a run of so many steps; `steps` is the framework's own limit, taken where none is given.
    `when` says in a few words when the text is added, `named` by which names its sources are known.
    """

    name: str
    named: str
    when: str
    make: Callable[[int], tuple[Injector, ...]]
    steps: int = 0

    @property
    def sources(self) -> tuple[PeerSource, ...]:
        """Where the bytes of its texts are from."""
        return tuple(SOURCES[name] for name in self.named.split())


def _thought(_: int) -> tuple[Injector, ...]:
    return (ThoughtPrompt(TEXTS["MELLEA_THOUGHT"], "mellea_thought"),)


def _reminder() -> tuple[Injector, ...]:
    return (LatestOnly(ThoughtPrompt(TEXTS["DSPY_REMINDER"], "dspy_reminder")),)


_ALL = (
    Preset("mellea-initiator", "MELLEA", "once, before the question", lambda _: (MelleaInitiator(),)),
    Preset("mellea-thought", "MELLEA_THOUGHT_FILE", "before every reply", _thought),
    Preset("mellea-react", "MELLEA MELLEA_THOUGHT_FILE", "both of these", lambda n: (MelleaInitiator(), *_thought(n))),
    Preset("rlms-turn-counter", "RLMS", "before every reply", lambda n: (RlmsTurnCounter(n),), steps=30),
    Preset("rlms-variables", "RLMS_VARIABLES", "after every cell", lambda _: (RlmsVariables(),)),
    Preset("rlms", "RLMS RLMS_VARIABLES", "both of these", lambda n: (RlmsVariables(), RlmsTurnCounter(n)), steps=30),
    Preset("smolagents-code-echo", "SMOLAGENTS", "after a turn with calls", lambda _: (SmolagentsEcho(),)),
    Preset("smolagents-retry", "SMOLAGENTS", "after a turn with an error", lambda _: (SmolagentsRetry(),)),
    Preset("smolagents", "SMOLAGENTS", "both of these", lambda _: (SmolagentsEcho(), SmolagentsRetry())),
    Preset("dspy-history", "DSPY_HISTORY", "in place of the turns", lambda _: (DspyHistory(),)),
    Preset("dspy-reminder", "DSPY_ADAPTER", "at the end of every request", lambda _: _reminder()),
    Preset(
        "dspy",
        "DSPY_HISTORY DSPY_ITERATION DSPY_ADAPTER",
        "history, iteration and reminder",
        lambda n: (DspyHistory(), LatestOnly(DspyIteration(n)), *_reminder()),
        steps=20,
    ),
    Preset("inspect-continue", "INSPECT", "after a reply without a call", lambda _: (InspectContinue(),)),
    Preset("fast-rlm-banner", "FAST_RLM", "once half the steps are used", lambda n: (FastRlmBanner(n),), steps=20),
    Preset("fast-rlm-no-code", "FAST_RLM", "after a reply without a call", lambda _: (FastRlmNoCode(),)),
    Preset("fast-rlm", "FAST_RLM", "both of these", lambda n: (FastRlmBanner(n), FastRlmNoCode()), steps=20),
    Preset(
        "seed-react", "SEED", "once, after the question", lambda _: (Told(TEXTS["SEED_TEMPLATE"], "seed_template"),)
    ),
    Preset("seed-ack", "SEED", "after every turn", lambda _: (Nudge(TEXTS["SEED_ACK"], "seed_ack"),)),
)

#: The presets by name.
PRESETS: Mapping[str, Preset] = {p.name: p for p in _ALL}


def preset(name: str, *, steps: int | None = None) -> tuple[Injector, ...]:
    """The injectors of a preset; `steps` is the limit that counters and banners tell of (default: the framework's own).

    Raises `ValueError` for a name that is not in `PRESETS`.
    """
    found = PRESETS.get(name)
    if found is None:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise ValueError(f"steps is a number of turns, 1 or more, not {steps!r}")
    return found.make(steps or found.steps)
