"""Steps of a run in the terminal: a panel a turn, shown as the turn ends or read back from a trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlm_loop.actions import RunCode
from rlm_loop.show import asked, clipped, counted, observed, prose

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.panel import Panel
    from rich.status import Status

    from rlm_loop.actions import Observation
    from rlm_loop.outcome import Outcome, Turn

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Text that cannot steer the terminal: control characters other than tab and newline are made visible."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def step_panel(turn: Turn) -> Panel:
    """What the model wrote, the code it ran or the tools it called, what came back, and the turn's tokens."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[RenderableType] = []
    if written := prose(turn):
        parts.append(Text(visible(clipped(written))))
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        label, text = asked(action)
        if isinstance(action, RunCode):
            parts.append(_code(text))
        else:
            parts.append(Text.assemble((f"{label}\n", "bold cyan"), visible(clipped(text))))
        parts += _came_back(observation, text)
    return Panel(
        Group(*parts),
        title=f"turn {turn.index}",
        title_align="left",
        subtitle=f"{counted(turn.reply.usage)}, {turn.seconds:.1f} s",
        subtitle_align="right",
        border_style="yellow" if any(o.failure is not None for o in turn.observations) else "blue",
    )


def _code(text: str) -> RenderableType:
    from rich.syntax import Syntax

    return Syntax(visible(clipped(text)), "python", theme="ansi_dark", word_wrap=True, background_color="default")


def _came_back(observation: Observation, said: str) -> list[RenderableType]:
    from rich.text import Text

    label, text = observed(observation)
    shown: list[RenderableType] = []
    if text and text not in (said, repr(said)):
        style = "bold red" if observation.failure is not None else "bold green"
        shown.append(Text.assemble((f"{label}\n", style), visible(clipped(text)).rstrip("\n")))
    if observation.answer is not None and label != "answer" and repr(observation.answer.value) != repr(said):
        shown.append(Text.assemble(("answer\n", "bold green"), visible(clipped(repr(observation.answer.value)))))
    return shown


def closing_line(outcome: Outcome) -> str:
    """Why the run ended and what it cost, in one line."""
    reason = f" ({outcome.reason})" if outcome.reason else ""
    turns = f"{outcome.steps} turn{'' if outcome.steps == 1 else 's'}"
    return f"{outcome.stop}{reason}: {turns}, {counted(outcome.usage)}, {outcome.seconds:.1f} s"


class LiveSteps:
    """A hook that shows each step as it happens, and that the model is at work in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def on_step_start(self, *, turn_index: int, **_: object) -> None:
        self._status = self._console.status(f"turn {turn_index}: the model writes, code runs ...", spinner="dots")
        self._status.start()

    def on_step_end(self, *, turn: Turn, **_: object) -> None:
        self.stop()
        self._console.print(step_panel(turn))

    def stop(self) -> None:
        """End the animation; called again it does nothing."""
        if self._status is not None:
            self._status.stop()
            self._status = None
