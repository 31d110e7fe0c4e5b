"""What 10, 40 and 120 MCP tools cost in a session of ten calls by script, under both loops: no model decides anything.

    npm install --prefix experiments/mcp_as_code
    python experiments/mcp_as_code/scripted.py            # counts anew: results/scripted.csv and the figure
    python experiments/mcp_as_code/scripted.py --table    # the table of what is committed; needs neither model nor npm

The question and the method are in README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop import Budget, LeanAgent, Task, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.models import LocalModel
from rlm_loop.report import Table
from rlm_loop.tools import Tool

sys.path.append(str(Path(__file__).resolve().parent))  # its own modules
sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from session import SHOP, Counted, Counts, Session

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
ROWS = HERE / "results" / "scripted.csv"
#: The causes under which a ledger counts tools: schemas, or lines of the system text.
SHOWN = ("tool_schema", "system")
#: Arms by name, and what each does with the ten calls.
ARMS = {
    "lean": "schemas, one call a reply",
    "lean-parallel": "schemas, as many calls a reply as can be",
    "lean-text": "lines, one call a reply",
    "code": "lines, one call a cell",
    "code-one-cell": "lines, nine calls in one cell",
}


def agents(session: Session, tools: Sequence[Tool], counts: Counts) -> dict[str, Agent]:
    """The arms, each with its script."""
    same: dict[str, Any] = {"tools": tools, "budget": Budget(steps=20), "max_depth": 0}
    return {
        "lean": LeanAgent(model=Counted(session.native(), counts), presentation="native", **same),
        "lean-parallel": LeanAgent(model=Counted(session.parallel(), counts), presentation="native", **same),
        "lean-text": LeanAgent(model=Counted(session.as_text(), counts), presentation="text", **same),
        "code": ToolLoopAgent(model=Counted(session.cells(), counts), **same),
        "code-one-cell": ToolLoopAgent(model=Counted(session.one_cell(), counts), **same),
    }


def rows(session: Session, sets: Mapping[int, Sequence[Tool]], counts: Counts) -> list[dict[str, Any]]:
    """One row a number of tools, arm, turn and cause; with 0 tools, the first request alone.

    Raises `RuntimeError` where a session does not go as written.
    """
    task = Task("scripted", session.question, session.answer)
    found: list[dict[str, Any]] = []
    for arm, agent in agents(session, (), counts).items():
        sums: dict[str, int] = {}
        for part in counts(agent.first_request(task).prompt):
            sums[part.cause] = sums.get(part.cause, 0) + part.tokens
        found += [_row(0, arm, 1, cause, sums[cause], 0) for cause in sorted(sums)]
    for size, tools in sets.items():
        for arm, agent in agents(session, tools, counts).items():
            outcome = agent.attempt(task)
            failed = [o.text for turn in outcome.turns for o in turn.observations if o.failure is not None]
            if outcome.answer != session.answer or failed:
                raise RuntimeError(f"{arm} with {size} tools did not go as written: {failed or outcome.reason}")
            for call in outcome.ledger.calls:
                sums: dict[str, list[int]] = {}
                for row in call.rows:
                    entry = sums.setdefault(row.cause, [0, 0])
                    entry[0] += row.tokens
                    entry[1] += row.resent
                found += [_row(size, arm, call.turn, cause, *sums[cause]) for cause in sorted(sums)]
    return found


def _row(size: int, arm: str, turn: int, cause: str, tokens: int, resent: int) -> dict[str, Any]:
    return {"tools": size, "arm": arm, "turn": turn, "cause": cause, "tokens": tokens, "resent": resent}


def recorded(path: Path = ROWS) -> pd.DataFrame:
    """The committed rows."""
    import pandas as pd

    return pd.read_csv(path)


def costs(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """By number of tools and arm: what the tools are in a request and in all of them, and the whole input.

    `cached` is the whole input where each token sent before costs a tenth.
    """
    shown = frame[frame.cause.isin(SHOWN)]
    without = shown[shown.tools == 0].groupby("arm").tokens.sum()
    found: list[dict[str, Any]] = []
    for (size, arm), part in frame[frame.tools > 0].groupby(["tools", "arm"], sort=False):
        requests = part.turn.nunique()
        a_call = int(shown[(shown.tools == size) & (shown.arm == arm) & (shown.turn == 1)].tokens.sum() - without[arm])
        whole, resent = int(part.tokens.sum()), int(part.resent.sum())
        figures = {"tools": size, "arm": arm, "requests": requests, "a_call": a_call, "in_all": a_call * requests}
        found.append({**figures, "input": whole, "cached": round(whole - 0.9 * resent)})
    return found


def table(frame: pd.DataFrame) -> Table:
    """What `costs` has, with the whole input as a share of that of `lean`."""
    every = costs(frame)
    lean = {row["tools"]: row["input"] for row in every if row["arm"] == "lean"}
    figures = ("requests", "a_call", "in_all", "input", "cached")
    made = [
        [str(r["tools"]), r["arm"], *(f"{r[name]:,}" for name in figures), f"{r['input'] / lean[r['tools']]:.2f}"]
        for r in every
    ]
    header = ["tools", "arm", "requests", "tools, a call", "tools, in all", "all input", "cached", "of lean"]
    notes = [
        "In tokens. Tools: what a request has more than one without MCP tools: schemas, or lines of the system text.",
        "Cached: all input, where each token sent before costs a tenth. Of lean: all input as a share of lean's.",
    ]
    return Table("Ten calls of MCP tools", header, made, notes, labels=2)


def figure(frame: pd.DataFrame) -> Figure:
    """All input by arm, of it the tools, a panel for each number of tools."""
    from rlm_loop.report.figures import style
    from rlm_loop.report.figures.style import COLOURS, PAGE, finish, sheet

    every = costs(frame)
    sizes = list(dict.fromkeys(row["tools"] for row in every))
    with style():
        made = sheet(PAGE, 2.6)
        panels = made.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        for axes, size in zip(panels, sizes, strict=True):
            own = [row for row in every if row["tools"] == size]
            names = [row["arm"] for row in own]
            told = [r["in_all"] / 1000 for r in own]
            rest = [(r["input"] - r["in_all"]) / 1000 for r in own]
            axes.barh(names, told, color=COLOURS[0], label="tools")
            axes.barh(names, rest, left=told, color=COLOURS[1], hatch="//", label="all else")
            axes.set_xlabel("thousand input tokens")
            axes.set_title(f"{size} tools")
            axes.margins(x=0.18)
            for at, row in enumerate(own):
                axes.annotate(f" {row['input'] / 1000:.0f}", (row["input"] / 1000, at), va="center", fontsize=7)
            finish(axes)
        panels[0].invert_yaxis()
        made.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False)
    sums = [f"{r['arm']} {r['input']:,}" for r in every if r["tools"] == sizes[-1]]
    made.set_label(f"Input tokens of ten calls with {sizes[-1]} tools: {', '.join(sums)}.")
    return made


def main() -> None:
    import pandas as pd

    from rlm_loop.report.figures import save

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="only show what is committed")
    parser.add_argument("--model", default="local", help="whose tokenizer counts (see rlm-loop models list)")
    options = parser.parse_args()
    if not options.table:
        from servers import SIZES, first

        counts = LocalModel(options.model, context_size=512, threads=1).measure
        found = rows(SHOP, {size: first(size) for size in SIZES}, counts)
        pd.DataFrame(found).to_csv(ROWS, index=False, lineterminator="\n")
        save(figure(recorded()), HERE / "figures" / "scripted.png")
    print(table(recorded()).to_markdown())


if __name__ == "__main__":
    main()
