"""The text of each loop that the tuning chose; other studies take their loops from here and from nowhere else.

chosen()["lean"].make(budget=Budget(steps=5))     # the winner by README.md's rule, from the committed rows
chosen("default")["lean"].make(...)               # the package's own text
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.tuning.study import SECOND, best
from experiments.tuning.texts import CANDIDATES, Maker
from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.study import Results, StudyError, load_study

RESULTS = Path(__file__).resolve().parent / "results"
DEFAULTS: Mapping[str, Maker] = {
    "code": partial(ToolLoopAgent, max_depth=0),
    "lean": partial(LeanAgent),
    "react": partial(ReActAgent),
}


@dataclass(frozen=True)
class Chosen:
    """A loop with its text: `name` is the candidate's (`default`: the package's own), `make` makes the agent."""

    loop: str
    name: str
    make: Maker

    @property
    def constrained(self) -> bool:
        """Whether a grammar lets a reply be a call only, so that no text can be an answer."""
        return self.make(model="local").settings()["dialect"].get("presentation") == "constrained"


def chosen(texts: str = "tuned", *, round2: str | Path = "", free: bool = False) -> dict[str, Chosen]:
    """Each loop with the text to use.

    `texts` is `tuned` (the winner of both rounds; `round2` are the second one's results, by default those committed) or
    `default` (the package's own).  `free` leaves candidates with constrained replies out.  Raises `StudyError` where
    the second round is not there or not finished, and where a candidate's text is no longer the recorded one.
    """
    if texts == "default":
        makers = {**DEFAULTS, "lean": partial(LeanAgent, presentation="text")} if free else DEFAULTS
        return {loop: Chosen(loop, "default", make) for loop, make in makers.items()}
    if texts != "tuned":
        raise StudyError(f"texts is tuned or default, not {texts!r}")
    first, second = load_study(RESULTS / "round1"), _second(Path(round2 or RESULTS / "round2"))
    return {loop: winner(loop, first, second, free) for loop in CANDIDATES}


def _second(folder: Path) -> Results:
    if not (folder / "study.json").is_file():
        raise StudyError(
            f"there is no second round of the tuning in {'/'.join(folder.parts[-4:])}: commit it there, name its "
            "folder (--set round2=runs/tuning2), or take the package's texts (--set texts=default)"
        )
    return load_study(folder)


def winner(loop: str, first: Results, second: Results, free: bool = False) -> Chosen:
    """Most tasks resolved in both rounds together, then fewest prompt and output tokens, then the order of `texts`.

    Raises as `chosen` does.
    """
    through = [Chosen(loop, arm, CANDIDATES[loop][arm]) for arm in best(first, loop)]
    for one in through:
        _as_recorded(one, first, second)
    wanted = sum(SECOND.values())
    judged = {c.name: sum(r["arm"] == c.name and r["resolved"] is not None for r in second.rows) for c in through}
    if short := [name for name, count in judged.items() if count < wanted]:
        raise StudyError(f"the second round is not finished for {short[0]}: {judged[short[0]]} of {wanted} tasks")
    order = list(CANDIDATES[loop])

    def worth(one: Chosen) -> tuple[int, int, int]:
        rows = [row for results in (first, second) for row in results.rows if row["arm"] == one.name]
        spent = sum((row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in rows)
        return -sum(bool(row["resolved"]) for row in rows), spent, order.index(one.name)

    return min((one for one in through if not (free and one.constrained)), key=worth)


def _as_recorded(one: Chosen, *rounds: Results) -> None:
    """Raises `StudyError` where a text was changed after it was measured."""
    now = _text(one.make(model="local").settings())
    for results in rounds:
        for recorded in results.lock["arms"].get(one.name, {}).values():
            if _text(recorded["settings"]) != now:
                raise StudyError(f"the text of {one.name} is not the one that {results.name} measured")


def _text(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    return (settings["agent"], settings["system"], settings.get("presentation"), settings["require_code"])
