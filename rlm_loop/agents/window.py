"""The model's window: how many tokens it takes, and an observation that does not fit is clipped to what is left of it.

So a long result costs the run its middle and not its end.  What a history setting would leave out is not counted: it is
left out before the next request (`history`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm_loop.actions import Observation
from rlm_loop.agents.compaction import without_turns
from rlm_loop.agents.metered import Metered
from rlm_loop.dialects.base import Dialect
from rlm_loop.messages import Prompt
from rlm_loop.models.base import Model, ModelError
from rlm_loop.outcome import Turn
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again

_REPLY = 512  # tokens that are kept for the reply where nothing says how long it may be
_LEAST = 200  # characters that an observation keeps
_TRIES = 6


def window_of(model: Model) -> int | None:
    """The tokens that prompt and reply may have together; `None` where nobody says."""
    try:
        return model.window
    except ModelError:  # a server that cannot be asked: the request will say so
        return None


def room_of(model: Metered) -> int | None:
    """The longest prompt that leaves room for a reply, in tokens; `None` where the window is not known."""
    window = window_of(model.model)
    if window is None:
        return None
    reply = model.max_tokens or model.model.max_tokens or _REPLY
    return window - min(reply, window // 4)


class Fit:
    """Clips what a turn is to show where the next prompt would not fit; `shortens` says that a history setting would
    leave out the turns before it."""

    def __init__(self, dialect: Dialect, model: Metered, *, shortens: bool) -> None:
        self._dialect, self._model, self._shortens = dialect, model, shortens
        # what is replayed was clipped when it was recorded
        self._room = None if model.model.immediate else room_of(model)

    def __call__(self, prompt: Prompt, turn: Turn) -> Turn:
        """The turn, with shorter observations where they do not fit; the model is told."""
        if self._room is None or turn.answer is not None or _at_most(prompt, turn.observations) <= self._room:
            return turn
        for _ in range(_TRIES):
            grown = prompt + self._dialect.format_turn(turn)
            if self._shortens:
                grown = without_turns(grown, {turn.index})
            over = self._model.model.prompt_tokens(grown) - self._room
            longest = max(turn.observations, key=lambda o: len(o.text), default=None)
            if over <= 0 or longest is None or len(longest.text) <= _LEAST:
                break
            turn = replace(
                turn, observations=tuple(_shorter(o, over) if o is longest else o for o in turn.observations)
            )
        return turn


def _at_most(prompt: Prompt, observations: Sequence[Observation]) -> int:
    """No fewer tokens than the prompt will have: a token is a byte of text at least."""
    texts = [span.text for message in prompt.messages for span in message.spans] + [o.text for o in observations]
    calls = sum(len(call.arguments) + 100 for message in prompt.messages for call in message.tool_calls)
    tools = sum(len(str(dict(tool))) for tool in prompt.tools)
    return (
        sum(len(t) if t.isascii() else 4 * len(t) for t in texts) + calls + 4 * tools + 64 * len(prompt.messages) + 512
    )


def _shorter(seen: Observation, over: int) -> Observation:
    """So many tokens less, taken as three characters each, and a line that says so."""
    said = "\n[clipped: it does not fit the model's window; look at less at once]"
    whole = seen.text.removesuffix(said)
    text, _ = clip_again(whole, max(_LEAST, len(whole) - 3 * over - len(said)))
    return replace(seen, text=text + said, truncated=True, full=seen.full or clip(whole, RECORD_CAP)[0])
