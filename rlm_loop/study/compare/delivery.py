"""Whether a dose was delivered: in how many runs the text that an injector adds was in a prompt at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.study.compare.pair_keys import complete_and_incomplete, pair_key
from rlm_loop.study.store.rows import Row

_SCAFFOLD = "scaffold:"


@dataclass(frozen=True)
class Delivery:
    """Of how many `runs` of an arm `delivered` had a token of an injector that the baseline does not have.

    `arm` is the baseline for an injector that only the baseline has.  Counted are runs whose ledger is known.
    """

    model: str
    arm: str
    injector: str
    runs: int
    delivered: int

    @property
    def share(self) -> float | None:
        return self.delivered / self.runs if self.runs else None

    @property
    def warning(self) -> str:
        """One line where under half of the runs had any of it; else empty."""
        if self.share is None or self.share >= 0.5:
            return ""
        return (
            f"{self.arm}: only {self.delivered:,} of {self.runs:,} runs had a token of {self.injector}, so the effect "
            "is mostly that of runs without it"
        )


def deliveries(rows: Sequence[Row], lock: Mapping[str, Any], baseline: str) -> list[Delivery]:
    """One entry for each model, arm and injector in which the arm differs from the baseline (also in its dose alone).

    Injectors are those of the settings in `study.json`; counted are the units that every arm was tried on.
    """
    whole = set(complete_and_incomplete(rows)[0])
    found: list[Delivery] = []
    for model in dict.fromkeys(row["model"] for row in rows):
        arms = list(dict.fromkeys(row["arm"] for row in rows if row["model"] == model))
        there = _injectors(lock, baseline, model)
        asked: dict[tuple[str, str], None] = {}
        for arm in arms:
            here = _injectors(lock, arm, model)
            asked |= {(arm, name): None for one in here if one not in there for name in _names(one)}
            asked |= {(baseline, name): None for one in there if one not in here for name in _names(one)}
        for arm, name in asked:
            mine = [r for r in rows if (r["arm"], r["model"]) == (arm, model) and pair_key(r) in whole]
            known = [r["by_cause"] for r in mine if r.get("by_cause")]
            delivered = sum(any(_is_of(cause, name) and n for cause, n in by.items()) for by in known)
            found.append(Delivery(model, arm, name, len(known), delivered))
    return found


def _injectors(lock: Mapping[str, Any], arm: str, model: str) -> Sequence[Any]:
    settings = lock.get("arms", {}).get(arm, {}).get(model, {}).get("settings") or {}
    return settings.get("injectors") or ()


def _names(injector: Any) -> Iterator[str]:
    """The names in the settings of an injector: its own, or that of the one that it doses."""
    if isinstance(injector, Mapping):
        settings = cast("Mapping[str, Any]", injector)
        if isinstance(settings.get("name"), str):
            yield settings["name"]
        else:
            for part in settings.values():
                yield from _names(part)


def _is_of(cause: str, name: str) -> bool:
    """Whether a cause is that of the injector, at any dose (`scaffold:nudge/2`, `scaffold:thought@52`, `...*4`)."""
    rest = cause.removeprefix(_SCAFFOLD + name)
    return cause.startswith(_SCAFFOLD + name) and rest[:1] in ("", "@", "/", "*")
