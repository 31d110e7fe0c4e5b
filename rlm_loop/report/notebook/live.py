"""A hook that shows a run while it goes on: its steps, its tokens by cause, its sub-calls."""

from __future__ import annotations

import contextvars
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import Agent
from rlm_loop.agents.background import LiveRun
from rlm_loop.agents.session import AgentSession
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.report.notebook.formatting import (
    causes_line,
    causes_title,
    clipped,
    closing_line,
    most_first,
    step_text,
    turn_head,
    visible,
)
from rlm_loop.traces.kept import in_kernel

#: Characters of a reply that are kept for the view; the whole reply is in the turn.
KEPT = 4_000
#: A word that may not be over yet is not shown: the first half of a key would not be known for one.
_UNFINISHED = re.compile(r"\S{1,200}\Z")
_DOING = {
    "begin": "waiting for the model",
    "thinking": "the model thinks",
    "text": "the model writes",
    "call": "the model writes a call",
    "end": "the reply is there, its code runs",
}


@dataclass(frozen=True)
class Writing:
    """A moment of a reply: `doing` in a few words, the end of the `text` so far, and its length in characters."""

    doing: str = "the model writes, its code runs"
    text: str = ""
    length: int = 0

    def heard(self, kind: str, text: str) -> Writing:
        """The moment after `on_text(kind, text)`."""
        match kind:
            case "begin":
                return Writing(_DOING[kind])
            case "retry":
                return Writing(visible(text))
            case "loading":
                return replace(self, doing=f"loading the model ({visible(text)})")
            case _:  # with "end" there is no more text
                return Writing(_DOING.get(kind, self.doing), (self.text + text)[-KEPT:], self.length + len(text))

    @property
    def shown(self) -> str:
        """The text as it may be shown: no secrets, nothing that steers a terminal."""
        return visible(self.text if self.doing == _DOING["end"] else _UNFINISHED.sub("", self.text)).strip("\n")

    def __str__(self) -> str:
        return f"{self.doing}, {self.length:,} characters" if self.length else self.doing


INTERRUPT = "to stop: interrupt the kernel (the stop button); what was done until then is kept"
CTRL_C = "to stop: Ctrl-C; what was done until then is kept"
#: Turns of a running agent that are shown whole, lines of earlier turns, and lines of a reply that is being written.
WHOLE, LINES, WRITTEN = 3, 20, 20


class LiveView:
    """Shows the run of an agent as it happens: `agent.run(question, hooks=(LiveView(),))`.

    In a notebook one output of the cell is drawn again and again: the turns, the reply while the model writes it, the
    input tokens by cause, the state of the sub-calls, and at the end the outcome.  Elsewhere each turn is printed to
    standard error when it ends.  `outcome` is what the latest run came to, an interrupted run's too.  `note` is one
    line to be shown, `how_to_stop` another, `every` the least time in seconds between two drawings within a turn.

    A view shows one run at a time; a further run makes a new output.  A view that cannot be drawn never ends the run.
    """

    shown: ClassVar[tuple[str, int]] = "", 0
    """The run whose outcome a view showed last, and the number of the notebook's cell that did."""

    def __init__(
        self,
        *,
        note: str = "",
        how_to_stop: str | None = None,
        every: float = 0.2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._note, self._how, self._every, self._clock = note, how_to_stop, every, clock
        self._lock = threading.RLock()
        self._handle: Any = None  # IPython's DisplayHandle, in a notebook
        self._over = threading.Event()
        self._began = self._drawn = 0.0
        self._begin("", "", "", Ledger())
        self._over.set()

    @property
    def running(self) -> bool:
        """True where a run is under way."""
        return not self._over.is_set()

    # -- events of a run (`tools/hooks.py`)

    def on_run_start(self, *, agent: str, model: str, question: str = "", ledger: Ledger | None = None) -> None:
        with self._lock:
            self._begin(question, agent, model, ledger or Ledger())
            self._drawn = self._began = self._clock()
            self._handle = _display(self._bundle()) if in_kernel() else None
            if self._handle is None:
                _say("\n".join(filter(None, [self._title(), self._note, self._how or CTRL_C])))
                return
            context = contextvars.copy_context()  # so that a kernel shows it under the cell that started the run
            threading.Thread(target=context.run, args=(self._tick, self._over), daemon=True).start()

    @property
    def on_text(self) -> Callable[..., None] | None:
        """Hears a reply while it is written; `None` outside a notebook, where nothing is shown of it."""
        return None if self._handle is None else self._hear

    def _hear(self, *, kind: str, text: str, node: str) -> None:
        with self._lock:
            if node not in self._calls:
                self._writing = self._writing.heard(kind, text)
                self._doing = str(self._writing)
                self._draw(soon=kind in ("text", "thinking", "call"))

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(1.0):
            with self._lock:
                if not over.is_set():
                    self._draw(soon=True)

    def on_step_start(self, *, turn_index: int) -> None:
        with self._lock:
            if not self._agents:  # else it is a sub-agent's
                self._turn, self._calls, self._writing = turn_index, {}, Writing()
                self._doing = str(self._writing)
                self._draw()

    def on_tool_start(self, *, tool: str) -> None:
        with self._lock:
            if not self._agents:
                self._doing = f"{tool} runs"
                self._draw(soon=True)

    def on_step_end(self, *, turn: Turn) -> None:
        with self._lock:
            if not self._agents:
                self._turns.append(turn)
                self._doing, self._writing, self._calls = "", Writing(), {}
                self._draw()
                if self._handle is None:
                    _say(step_text(turn))

    def on_subcall_start(self, *, node: str, kind: str, **_: Any) -> None:
        with self._lock:
            self._calls[node] = kind, "running"
            self._draw(soon=True)

    def on_subcall_end(self, *, node: str, ok: bool, **_: Any) -> None:
        with self._lock:
            if node in self._calls:  # else it began in an earlier turn
                self._calls[node] = self._calls[node][0], "done" if ok else "failed"
            self._draw(soon=True)

    def on_run_end(self, *, outcome: Outcome) -> None:
        with self._lock:
            self.outcome = outcome
            if self._handle is not None:
                LiveView.shown = outcome.run, _cell()
            self._end(closing_line(outcome))

    def on_run_error(self, *, error: BaseException) -> None:
        with self._lock:
            self._error = f"{type(error).__name__}: {error}"
            self._end(f"failed: {clipped(self._error)}")

    # -- drawing

    def _begin(self, question: str, agent: str, model: str, ledger: Ledger) -> None:
        self._question, self._agent, self._model, self._ledger = question, agent, model, ledger
        self._turns: list[Turn] = []
        self._turn, self._doing, self._error = 0, "", ""
        self._calls: dict[str, tuple[str, str]] = {}
        """Kind and state of each sub-call of this turn."""
        self._writing = Writing()
        self._over = threading.Event()
        self.outcome: Outcome | None = None

    def _end(self, line: str) -> None:
        self._over.set()
        self._show()
        if self._handle is None:
            _say("\n".join(filter(None, [line, causes_line(self._ledger.by_cause(), self._ledger.counting)])))

    def _draw(self, *, soon: bool = False) -> None:
        """Draw; a change that comes `soon` after the last drawing waits for the next one."""
        if self.running and not (soon and self._clock() - self._drawn < self._every):
            self._drawn = self._clock()
            self._show()

    def _show(self) -> None:
        if self._handle is not None:
            self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": visible(self._plain())}

    def html(self) -> str:
        """The run at this moment, without a script; what a model or a tool wrote is escaped."""
        from rlm_loop.report.notebook.html import turn_values, view

        if self.outcome is not None:
            return self.outcome.to_html() + view("live_note", self._note)
        if self._error:
            return view("live_error", clipped(self._error))
        earlier = self._turns[:-WHOLE]
        left_out = [f"{len(earlier) - LINES} earlier turns"] if len(earlier) > LINES else []
        return view(
            "live",
            question=clipped(self._question, 1_000),
            facts=" · ".join(filter(None, [self._agent, self._model, self._note])),
            earlier=[*left_out, *map(turn_head, earlier[-LINES:])],
            turns=[turn_values(turn) for turn in self._turns[-WHOLE:]],
            doing=self._now(),
            written=visible("\n".join(self._writing.shown.split("\n")[-WRITTEN:])),
            title=causes_title(self._ledger.counting),
            causes=most_first(self._ledger.by_cause()),
            how_to_stop=self._how or INTERRUPT,
        )

    def _plain(self) -> str:
        if self.outcome is not None:
            return f"{self.outcome}\n{closing_line(self.outcome)}"
        return f"failed: {clipped(self._error)}" if self._error else f"{self._title()}\n{self._now()}"

    def _title(self) -> str:
        return f"{self._agent} with {self._model}: {' '.join(clipped(self._question, 300).split())}"

    @property
    def _agents(self) -> bool:
        """True where a sub-agent is at work: the steps that happen now are its."""
        return ("agent", "running") in self._calls.values()

    def _sub_calls(self) -> str:
        """Return the state of this turn's sub-calls in a few words; empty where there is none."""
        counts = Counter(state for _, state in self._calls.values())
        told = [f"{counts[state]} {state}" for state in ("done", "running", "failed") if counts[state]]
        return f"sub-calls: {', '.join(told)}" if told else ""

    def _now(self) -> str:
        """Say what goes on now, in a few words."""
        turn = f"turn {self._turn}" if self._turn else "starting"
        line = ": ".join(filter(None, [turn, self._sub_calls() or self._doing]))
        seconds = self._clock() - self._began
        return f"{line} · {seconds:.0f} s" if seconds >= 1 else line


def start_live(agent: Agent | AgentSession, question: str, *, show: bool = True, **options: Any) -> LiveRun:
    """Run an agent, or ask a session, in the background: returns at once, and the cell's output shows how far it is.

    `show=False` shows nothing.  `options` are those of `Agent.run` (`context`, `tools`, `workspace`, `trace`) or of a
    session's `ask`.
    """
    ask = agent.ask if isinstance(agent, AgentSession) else agent.run
    how = "to stop: run.stop() in a cell; what was done until then is kept"
    view = (LiveView(how_to_stop=how),) if show else ()
    return LiveRun(lambda run: ask(question, hooks=(*view, run), **options))


def is_shown(outcome: Outcome) -> bool:
    """Return whether a view in this cell of a notebook shows the outcome."""
    return in_kernel() and LiveView.shown == (outcome.run, _cell())


def _cell() -> int:
    from IPython import get_ipython

    return getattr(get_ipython(), "execution_count", 0)


def _display(bundle: dict[str, str]) -> Any:
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)


def _say(text: str) -> None:
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    print(visible(text).encode(encoding, "replace").decode(encoding, "replace"), file=sys.stderr, flush=True)
