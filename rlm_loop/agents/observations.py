"""What came of an action, as the model is shown it: results of cells, failures, and no more than the cap."""

from __future__ import annotations

from dataclasses import replace

from rlm_loop.actions import Failure, FailureKind, Observation
from rlm_loop.repl.base import CellResult, EvaluationFailed, Session
from rlm_loop.repl.clip import RECORD_CAP, clip, clip_again

PENDING = "final_answer was set, but the cell failed: set it again to confirm it."


def failed_action(kind: FailureKind, message: str) -> Observation:
    """An action that came to nothing; the model reads the message."""
    return Observation(message, Failure(kind, message), "error")


def cell_observation(cell: CellResult, cap: int, variables: tuple[str, ...] = ()) -> Observation:
    """What a cell printed, and below it what went wrong; of an answer that it set, see the environment."""
    below = [cell.message] if cell.error not in (None, "runtime") else []
    below += [PENDING] if cell.pending is not None else []
    more, _ = clip("\n".join(below), cap // 2)
    text, cut = clip_again(cell.output, cap - len(more) - (1 if more else 0), cell.characters)
    seen = Observation(
        "\n".join(filter(None, [text, more])),
        None,
        "repl_output",
        seconds=cell.seconds,
        truncated=cell.truncated or cut,
        displays=cell.displays,
        full=cell.full or (cell.output if cut else ""),
        variables=variables,
    )
    return (
        seen if cell.error is None else replace(seen, failure=Failure(cell.error, cell.message), pending=cell.pending)
    )


def bounded(seen: Observation, cap: int) -> Observation:
    """The observation with no more characters than the cap, whatever it is made of."""
    text, cut = clip_again(seen.text, cap)
    return replace(seen, text=text, truncated=True, full=seen.full or clip(seen.text, RECORD_CAP)[0]) if cut else seen


def simple_names(session: Session | None, cell: CellResult) -> tuple[str, ...]:
    """The names of the simple variables that there are now; all names where the values cannot be looked at."""
    names: tuple[str, ...] = getattr(session, "variables", ())
    if cell.error not in (None, "runtime") or session is None:
        return names  # to look would start the REPL again before anybody needs it
    asked = [n for n in names if n != "context"]  # a large one is on disk: naming it would read it
    simple = "str, int, float, bool, list, dict, tuple"
    try:
        kinds = session.get(f"[{', '.join(f'isinstance({n}, ({simple}))' for n in asked)}]") if asked else []
    except EvaluationFailed:  # such as a cell that has bound `isinstance` to something else
        return names
    plain = {n for n, is_simple in zip(asked, kinds, strict=True) if is_simple}
    return tuple(n for n in names if n in plain or n == "context")
