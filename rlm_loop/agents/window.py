"""The model's window: results and the model's own old texts are clipped to what is left of it.

A long result costs the run its middle and not its end.  The history setting comes first: it is applied before each
request (`history`), and what it would leave out is not counted here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.actions import Observation
from rlm_loop.agents.compaction import turns_in, without_turns
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import Dialect
from rlm_loop.messages import Message, Prompt, ToolCall
from rlm_loop.models.base import Model, ModelError
from rlm_loop.outcome import Turn
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again

_REPLY = 512  # tokens that are kept for the reply where nothing says how long it may be
_LEAST = 200  # characters that an observation or a text of the model keeps
_TRIES = 6
_CLIPPED = "\n[clipped: it does not fit the model's window; look at less at once]"


def window_of(model: Model) -> int | None:
    """Tokens that prompt and reply may have together; `None` where nobody says."""
    try:
        return model.window
    except ModelError:  # a server that cannot be asked: the request will say so
        return None


def room_of(meter: Meter) -> int | None:
    """The longest prompt that leaves room for a reply, in tokens; `None` where the window is not known."""
    window = window_of(meter.model)
    if window is None:
        return None
    reply = meter.max_tokens or meter.model.max_tokens or _REPLY
    return window - min(int(reply), window // 4)


class Window:
    """Clips what does not fit; `shortens` says that a history setting would leave out the turns before the last."""

    def __init__(self, dialect: Dialect, meter: Meter, room: int, *, shortens: bool) -> None:
        self._dialect, self._meter, self._room, self._shortens = dialect, meter, room, shortens
        self._sizes: dict[str, int] = {}

    def fit(self, prompt: Prompt, turn: Turn) -> Turn:
        """The turn, with shorter observations where they do not fit; the model is told."""
        if self._meter.model.immediate:  # results of a recorded run were clipped when it was made
            return turn
        if turn.answer is not None or _at_most(prompt, turn.observations) <= self._room:
            return turn
        for _ in range(_TRIES):
            grown = prompt + self._dialect.format_turn(turn)
            if self._shortens:
                grown = without_turns(grown, {turn.index})
            over = self._size(grown) - self._room
            longest = max(turn.observations, key=lambda o: len(o.text), default=None)
            if over <= 0 or longest is None or len(longest.text) <= _LEAST:
                break
            clipped = (_shorter(o, over) if o is longest else o for o in turn.observations)
            turn = replace(turn, observations=tuple(clipped))
        return turn

    def shortened(self, prompt: Prompt) -> Prompt:
        """The prompt, with the model's own oldest texts clipped where it is longer than the window has room for.

        Raises `BudgetSpent` where the window is full of what may not be clipped.
        """
        if _at_most(prompt, ()) <= self._room:
            return prompt
        self._sizes = {}
        over, before = self._size(prompt) - self._room, prompt
        for index, message in enumerate(prompt.messages):
            if over <= 0:
                break
            if message.role == "assistant" and (clipped := _own_clipped(message)) != message:
                messages = (*prompt.messages[:index], clipped, *prompt.messages[index + 1 :])
                prompt = replace(prompt, messages=messages)
                over = self._size(prompt) - self._room
        window = window_of(self._meter.model)
        full = window is not None and over + self._room >= window
        if prompt is not before or full:
            about = {"policy": "own_texts", "asked": None, "due": "window", "fallback": None, "over": full}
            record_compaction(self._meter, before, prompt, self._sizes, turn=self._meter.turn, **about)
        if full:
            raise BudgetSpent("window", f"the messages fill the model's window of {window} tokens")
        return prompt

    def _size(self, prompt: Prompt) -> int:
        found = self._sizes[prompt.digest()] = self._meter.model.prompt_tokens(prompt)
        return found


def record_compaction(meter: Meter, before: Prompt, after: Prompt, sizes: Mapping[str, int], **about: Any) -> None:
    """Write the event that says why a request does not begin with the one before; `sizes` are tokens by hash."""
    then, now = _by_turn(before), _by_turn(after)
    meter.trace.record(
        "compaction",
        node=meter.node.path,
        depth=meter.node.depth,
        messages_before=len(before.messages),
        messages=len(after.messages),
        shortened=[turn for turn in now if now[turn] != then[turn]],
        left_out=[turn for turn in then if turn not in now],
        tokens_before=sizes.get(before.digest()),
        tokens=sizes.get(after.digest()),
        sizes=dict(sizes),
        **about,
    )


def _by_turn(prompt: Prompt) -> dict[int, list[Message]]:
    return {turn: [m for m in prompt.messages if m.turn == turn] for turn in turns_in(prompt)}


def _own_clipped(message: Message) -> Message:
    spans = tuple(replace(s, text=_cut(s.text)) if s.cause == "assistant" else s for s in message.spans)
    calls = tuple(replace(call, arguments=_arguments_clipped(call)) for call in message.tool_calls)
    return replace(message, spans=spans, tool_calls=calls)


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _LEAST else clip(text, _LEAST)[0]


def _arguments_clipped(call: ToolCall) -> str:
    """The arguments with long texts cut: they stay JSON, since servers read them."""
    if len(call.arguments) <= 2 * _LEAST:
        return call.arguments
    try:
        given: Any = json.loads(call.arguments)
    except ValueError:
        return "{}"
    if not isinstance(given, dict):
        return "{}"
    values = cast("dict[str, Any]", given)
    return json.dumps({k: _cut(v) if isinstance(v, str) else _cut(json.dumps(v)) for k, v in values.items()})


def _at_most(prompt: Prompt, observations: Sequence[Observation]) -> int:
    """No fewer tokens than the prompt will have: a token is a byte of text at least."""
    texts = [span.text for message in prompt.messages for span in message.spans] + [o.text for o in observations]
    calls = sum(len(call.arguments) + 100 for message in prompt.messages for call in message.tool_calls)
    tools = sum(len(str(dict(tool))) for tool in prompt.tools)
    characters = sum(len(t) if t.isascii() else 4 * len(t) for t in texts)
    return characters + calls + 4 * tools + 64 * len(prompt.messages) + 512


def _shorter(seen: Observation, over: int) -> Observation:
    """So many tokens less, taken as three characters each, and a line that says so."""
    text = seen.text.removesuffix(_CLIPPED)
    cut, _ = clip_again(text, max(_LEAST, len(text) - 3 * over - len(_CLIPPED)))
    return replace(seen, text=cut + _CLIPPED, truncated=True, full=seen.full or clip(text, RECORD_CAP)[0])
