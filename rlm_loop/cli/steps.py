"""Steps of a run in the terminal: a panel a turn, as the turn ends or read back from a trace, and `--approve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_loop.actions import RunCode
from rlm_loop.report.notebook.formatting import (
    action_text,
    causes_line,
    clipped,
    counted,
    observation_text,
    prose,
    visible,
)
from rlm_loop.report.notebook.live.subcalls import SubCalls
from rlm_loop.report.notebook.live.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.panel import Panel
    from rich.spinner import Spinner
    from rich.text import Text

    from rlm_loop.accounting.ledger import Ledger
    from rlm_loop.accounting.tree import TraceTree
    from rlm_loop.actions import CallTool, Observation
    from rlm_loop.messages import Usage
    from rlm_loop.outcome import Turn

#: Lines of a reply that is being written.
WRITTEN = 12


def step_panel(turn: Turn) -> Panel:
    """What the model wrote, the code it ran or the tools it called, what came back, and the turn's tokens."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[RenderableType] = []
    *before, after = prose(turn)
    for words, action, observation in zip(before, turn.actions, turn.observations, strict=True):
        parts += [Text(visible(clipped(words)))] if words else []
        label, text = action_text(action)
        if isinstance(action, RunCode):
            parts.append(_code(text))
        else:
            parts.append(Text.assemble((f"{label}\n", "bold cyan"), visible(clipped(text))))
        parts += _came_back(observation, text)
    parts += [Text(visible(clipped(after)))] if after else []
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

    label, text = observation_text(observation)
    shown: list[RenderableType] = []
    if text and text not in (said, repr(said)):
        style = "bold red" if observation.failure is not None else "bold green"
        shown.append(Text.assemble((f"{label}\n", style), visible(clipped(text)).rstrip("\n")))
    if observation.answer is not None and label != "answer" and repr(observation.answer.value) != repr(said):
        shown.append(Text.assemble(("answer\n", "bold green"), visible(clipped(repr(observation.answer.value)))))
    return shown


def tree_lines(tree: TraceTree, *, root: bool = True) -> Iterator[Text]:
    """A call tree for the terminal: failures red, what has not ended yellow.  `root` is whether its line is shown."""
    from rich.text import Text

    from rlm_loop.report.call_tree import lines

    styles = {"ok": "", "failed": "red", "open": "yellow"}
    for number, line in enumerate(lines(tree)):
        if number or root:
            yield Text(visible(line.text), style=styles[line.status])


class LiveSteps:
    """A hook that shows each step of the root as it happens, its sub-calls, and what goes on in between.

    In a terminal that is the reply as it is written, too, unless `writes` is false.
    """

    def __init__(self, console: Console, *, writes: bool = False) -> None:
        self._console = console
        self._live: Live | None = None
        self._calls = SubCalls()
        self._turn = 0
        self._writing = Writing()
        self._ledger: Ledger | None = None
        self._began = self._console.get_time()
        self._line = ""
        self._causes = ""
        self.on_text = self._hear if writes and console.is_terminal and not console.is_dumb_terminal else None

    def on_run_start(self, *, ledger: Ledger | None = None, **_: object) -> None:
        self._ledger, self._began = ledger, self._console.get_time()

    def on_step_start(self, *, turn_index: int, **_: object) -> None:
        if self._calls.agents:  # the step of a sub-agent
            return
        from rich.live import Live
        from rich.spinner import Spinner

        self.stop()
        self._turn, self._writing, self._line = turn_index, Writing(), ""
        spinner = Spinner("dots", style="status.spinner")
        self._live = Live(
            console=self._console, get_renderable=lambda: self._now(spinner), transient=True, refresh_per_second=10
        )
        self._live.start()

    def _hear(self, *, kind: str, text: str, node: str) -> None:
        if node not in self._calls:
            self._writing = self._writing.heard(kind, text)
            if kind == "end" and self._ledger is not None:
                self._causes = causes_line(self._ledger.by_cause(), self._ledger.counting)

    def _now(self, spinner: Spinner) -> RenderableType:
        """What goes on at this moment."""
        from rich.console import Group
        from rich.text import Text

        seconds = self._console.get_time() - self._began
        spinner.update(text=Text(f"turn {self._turn}: {self._line or self._writing} · {seconds:.0f} s"))
        parts: list[RenderableType] = [spinner]
        if written := self._writing.shown:
            lines = Text(written).wrap(self._console, self._console.width)
            parts.append(Text("\n").join(lines[-WRITTEN:]))
        if self._causes:
            parts.append(Text(self._causes, style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*parts)

    def on_subcall_start(
        self, *, node: str, kind: str, model: str | None = None, prompt: str = "", **_: object
    ) -> None:
        self._calls.start(node, kind, model, self._turn, prompt)
        self._line = self._calls.line()

    def on_subcall_end(
        self, *, node: str, ok: bool, seconds: float, usage: Usage, error: str | None = None, **_: object
    ) -> None:
        self._calls.end(node, ok, error, seconds, usage)
        self._line = self._calls.line()

    def on_step_end(self, *, turn: Turn, **_: object) -> None:
        if self._calls.agents:
            return
        self.stop()
        self._console.print(step_panel(turn))
        if len(self._calls):
            for line in tree_lines(self._calls.taken(), root=False):
                self._console.print(line, soft_wrap=True)

    def stop(self) -> None:
        """End the animation; called again it does nothing."""
        if self._live is not None:
            self._live.stop()
            self._live = None


_QUESTION = "Run this? [y]es, [a]ll from now on, [n]o, or a reason for the model: "


class AskInTerminal:
    """`Rules.approve` that shows the whole action and reads one line.

    "y" runs it, "a" runs it and all that follow, "n" or an empty line refuses it, and any other text refuses it with
    that text as the reason the model is told.  The end of the input refuses, too.  `read` gives the line.
    """

    __name__ = "user"  # the trace names this as the one who decided

    def __init__(self, console: Console, live: LiveSteps | None, read: Callable[[], str] = input) -> None:
        self._console, self._live, self._read = console, live, read
        self._all = False

    def __call__(self, action: RunCode | CallTool) -> bool | str:
        if self._all:
            return True
        if self._live is not None:
            self._live.stop()  # an animation would write over the question
        label, text = action_text(action)
        self._console.print(f"\n{label}:\n{visible(text)}", markup=False, highlight=False, soft_wrap=True)
        self._console.print(_QUESTION, end="", markup=False, soft_wrap=True)
        said = self._read().strip()
        self._all = said.lower() in ("a", "all")
        if self._all or said.lower() in ("y", "yes"):
            return True
        return said if said.lower() not in ("n", "no", "") else False
