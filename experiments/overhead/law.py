"""Fit the frame of each agent on a short session, and predict the requests of a longer one: `python law.py`.

It reads the requests that `experiments/harness_tax` recorded, and writes `results/law.csv`, `figures/law.png` and the
table in tables.md.  No model is called.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from rlm_loop.report import Table, write_between
from rlm_loop.study import LoopTokens

HERE = Path(__file__).resolve().parent
REQUESTS = HERE.parent / "harness_tax" / "results" / "requests.jsonl"
#: Causes that are the work: what was asked, and the replies and results that a request carries on.  All else is frame.
WORK = ("task", "assistant", "tool_result", "user")
#: The code loop shows results as user messages and repeats no text of its own: what the meter takes for repeated there
#: are lines of a result that an earlier one had.
REPEATS_NOTHING = "tool_loop_agent"
#: The requests of the short session that the line is fitted to: the first ones still set things up.
FITTED = range(5, 11)
#: The requests of the long session that are predicted.
PREDICTED = range(11, 26)
#: Drawn, from the smallest to the largest.
DRAWN = ("tool_loop_agent", "lean_agent", "mellea", "pi", "opencode", "claude_code", "qwen_code")


@dataclass(frozen=True)
class Request:
    """A request of an agent's loop, in tokens."""

    turn: int
    tokens: int
    work: int

    @property
    def frame(self) -> int:
        return self.tokens - self.work


def sessions() -> dict[tuple[str, int], list[Request]]:
    """Return the requests of each agent's main loop, by agent and length of the session."""
    found: defaultdict[tuple[str, int], list[Request]] = defaultdict(list)
    for line in REQUESTS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["main"] and row["condition"] == "bare":
            requests = found[row["agent"], row["turns"]]
            causes = (*WORK, "scaffold:repeated") if row["agent"] == REPEATS_NOTHING else WORK
            work = sum(tokens for cause, tokens in row["causes"].items() if cause in causes)
            requests.append(Request(len(requests) + 1, row["input_tokens"], work))
    return dict(found)


def frame_of(requests: list[Request]) -> LoopTokens:
    """Fit once and per turn to the frame of the requests in `FITTED`."""
    law = LoopTokens.fit([request.frame for request in requests if request.turn in FITTED])
    return LoopTokens(law.once - law.per_turn * (FITTED.start - 1), law.per_turn)


def rows() -> list[dict[str, Any]]:
    """Return a row for each agent and predicted request."""
    recorded = sessions()
    found: list[dict[str, Any]] = []
    for agent in sorted({agent for agent, _ in recorded}):
        law = frame_of(recorded[agent, 10])
        for request in recorded[agent, 25]:
            predicted = law.window(request.turn) + request.work
            values = {"once": round(law.once, 1), "per_turn": round(law.per_turn, 2)}
            found.append(
                {"agent": agent, **values, "turn": request.turn, "tokens": request.tokens, "law": round(predicted, 1)}
            )
    return found


def table(frame: Any) -> str:
    """Return the agents, their two numbers and the largest error of a predicted request."""
    lines: list[list[str]] = []
    for agent, own in frame[frame.turn.isin(PREDICTED)].groupby("agent"):
        error = ((own.law - own.tokens).abs() / own.tokens).max()
        once, per_turn = own.once.iloc[0], own.per_turn.iloc[0]
        law = LoopTokens(once, per_turn)
        overhead = f"{law.window(25):,.0f}"
        bill = f"{law.bill(25):,.0f}", f"{law.bill(25, 0.1):,.0f}"
        lines.append([str(agent), f"{once:,.0f}", f"{per_turn:.0f}", f"{100 * error:.2f} %", overhead, *bill])
    lines.sort(key=lambda line: float(line[1].replace(",", "")))
    columns = ["agent", "once", "a turn", "worst of 15 requests", "frame at turn 25", "bill of it", "with a cache"]
    return Table(f"The frame of {frame.agent.nunique()} agents", columns, lines).to_markdown().strip()


def draw(frame: Any, path: Path) -> None:
    """Draw requests as dots and the law as lines."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.2, 4.4))
    colours = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"]
    for agent, colour in zip(DRAWN, colours, strict=True):
        own = frame[frame.agent == agent]
        ax.plot(own.turn, own.law, color=colour, linewidth=1)
        ax.plot(own.turn, own.tokens, ".", color=colour, label=agent)
    ax.axvspan(0.5, 10.5, color="#eeeeee", zorder=0)
    ax.text(5.5, ax.get_ylim()[1] * 0.97, "fitted on another session", ha="center", va="top", fontsize=8)
    ax.text(18, ax.get_ylim()[1] * 0.97, "predicted", ha="center", va="top", fontsize=8)
    ax.set(xlabel="turn", ylabel="tokens of the request", xlim=(0.5, 25.5), ylim=(0, None))
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    ax.set_title("Dots: requests as metered. Lines: the law.", fontsize=10)
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    frame: Any = pd.DataFrame(rows())
    (HERE / "results").mkdir(exist_ok=True)
    frame.to_csv(HERE / "results" / "law.csv", index=False, lineterminator="\n")
    found = table(frame)
    write_between(HERE / "tables.md", "law", found)
    draw(frame, HERE / "figures" / "law.png")
    print(found)


if __name__ == "__main__":
    main()
