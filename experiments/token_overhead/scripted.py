"""Twenty-five turns by script, every prompt counted with the tokenizer of the local model: no model decides anything.

    python experiments/token_overhead/scripted.py            # rewrites results/scripted.csv and the figure, in seconds
    python experiments/token_overhead/scripted.py --table    # the tables of what is committed; needs no model

The question and the method are in README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop import Budget, LeanAgent, ReActAgent
from rlm_loop.accounting import Part
from rlm_loop.agents import Agent
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.models import LocalModel, ScriptedModel
from rlm_loop.tasks import Score, Task

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.peer_texts`

from experiments.peer_texts import MELLEA

if TYPE_CHECKING:
    import pandas as pd

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parent / "figures"
TURNS = 25

#: What every call of the session finds: a dozen lines of code, the same each time.
OBSERVATION = "\n".join(
    f"{number}: {line}"
    for number, line in enumerate(
        (
            "def merged(left: list[int], right: list[int]) -> list[int]:",
            '    """Two sorted lists as one sorted list."""',
            "    found: list[int] = []",
            "    i = j = 0",
            "    while i < len(left) and j < len(right):",
            "        if left[i] <= right[j]:",
            "            found.append(left[i])",
            "            i += 1",
            "        else:",
            "            found.append(right[j])",
            "            j += 1",
            "    return found + left[i:] + right[j:]",
        ),
        118,
    )
)
QUESTION = (
    "The test test_merged_keeps_order of this repository fails. Find the bug and fix it, then call final_answer with "
    "the name of the function that you changed."
)
ANSWER = "merged"


def search_code(pattern: str, path: str = ".") -> str:
    """Search the repository for a regular expression; returns matching lines with their numbers."""
    return OBSERVATION


def read_file(path: str, start: int = 1, end: int = 200) -> str:
    """Read the lines start to end of a file, with their numbers."""
    return OBSERVATION


def apply_edit(path: str, old: str, new: str) -> str:
    """Replace a text that occurs once in a file by another."""
    return OBSERVATION


CALLS = (
    ("search_code", {"pattern": "def merged", "path": "src"}),
    ("read_file", {"path": "src/lists.py", "start": 118, "end": 129}),
    ("apply_edit", {"path": "src/lists.py", "old": "left[i] <= right[j]", "new": "left[i] < right[j]"}),
)


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """The tool calls of the session: the three in turn, and `final_answer` in the last turn."""
    for turn in range(TURNS - 1):
        yield CALLS[turn % len(CALLS)]
    yield "final_answer", {"answer": ANSWER}


def native() -> list[Reply]:
    """The replies of a model that makes native tool calls."""
    return [Reply("", (ToolCall(f"call_{n}", name, json.dumps(a)),)) for n, (name, a) in enumerate(calls(), 1)]


def as_text() -> list[Reply]:
    """The replies of a model that writes its calls as JSON."""
    return [Reply(json.dumps({"name": name, "arguments": arguments})) for name, arguments in calls()]


def thought_action() -> list[Reply]:
    """The replies of a model that writes Thought / Action / Action Input, with a thought of one line."""
    names = {"final_answer": "finish"}
    return [
        Reply(f"Thought: I need to see more.\nAction: {names.get(name, name)}\nAction Input: {json.dumps(arguments)}")
        for name, arguments in calls()
    ]


Counts = Callable[[Prompt], list[Part]]


class Counted(ScriptedModel):
    """A scripted model whose tokens are counted by `counts`, such as the `measure` of a local model."""

    def __init__(self, replies: list[Reply], counts: Counts) -> None:
        super().__init__([self._billed(reply) for reply in replies])
        self._counts = counts

    def measure(self, prompt: Prompt) -> list[Part]:
        return self._counts(prompt)

    def _billed(self, reply: Reply) -> Callable[[Prompt], Reply]:
        def given(prompt: Prompt) -> Reply:
            tokens = sum(part.tokens for part in self.measure(prompt))
            return Reply(reply.text, reply.tool_calls, usage=Usage(tokens, 0))

        return given


def agents(counts: Counts) -> dict[str, Agent]:
    """The arms: each lean loop, and what a ReAct frame makes of it."""
    same: dict[str, Any] = {"budget": Budget(steps=TURNS)}
    return {
        "lean": LeanAgent(model=Counted(native(), counts), presentation="native", **same),
        "mellea-react": LeanAgent(model=Counted(native(), counts), presentation="native", injectors=MELLEA, **same),
        "lean-text": LeanAgent(model=Counted(as_text(), counts), presentation="text", **same),
        "react-text": ReActAgent(model=Counted(thought_action(), counts), form="text", **same),
    }


def rows(counts: Counts) -> list[dict[str, Any]]:
    """One row an arm, turn and cause.

    `characters` are those of the texts in the prompt that have the cause (for tool schemas, of their JSON; for the
    template none, since it is not ours); `request` is the beginning of the request's hash.
    """
    task = Task(
        "scripted", QUESTION, lambda _: Score(None), tools=(search_code, read_file, apply_edit), needs_repl=False
    )
    found: list[dict[str, Any]] = []
    for arm, agent in agents(counts).items():
        outcome = agent.attempt(task)
        prompts: list[Prompt] = agent.model.prompts  # pyright: ignore[reportAttributeAccessIssue]
        if outcome.answer != ANSWER or len(prompts) != TURNS:
            raise RuntimeError(f"the session of {arm} did not go as written: {outcome.reason}")
        for call, prompt in zip(outcome.ledger.calls, prompts, strict=True):
            length, tokens = characters(prompt), dict[str, list[int]]()
            for row in call.rows:
                entry = tokens.setdefault(row.cause, [0, 0])
                entry[0] += row.tokens
                entry[1] += row.resent
            for cause, (sent, resent) in sorted(tokens.items()):
                found.append(
                    {
                        "arm": arm,
                        "turn": call.turn,
                        "cause": cause,
                        "characters": length.get(cause, 0),
                        "tokens": sent,
                        "resent": resent,
                        "request": prompt.digest()[:12],
                    }
                )
    return found


def characters(prompt: Prompt) -> dict[str, int]:
    """The characters of a prompt by cause."""
    found = {"tool_schema": len(json.dumps(list(map(dict, prompt.tools))))} if prompt.tools else {}
    for message in prompt.messages:
        for span in message.spans:
            found[span.cause] = found.get(span.cause, 0) + len(span.text)
        for call in message.tool_calls:
            found["assistant"] = found.get("assistant", 0) + len(call.name) + len(call.arguments)
    return found


def recorded() -> pd.DataFrame:
    """The committed rows."""
    import pandas as pd

    return pd.read_csv(RESULTS / "scripted.csv")


def main() -> None:
    import pandas as pd

    from rlm_loop.report import overhead_by_turn, overhead_table
    from rlm_loop.report.figures import save

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="only show what is committed")
    parser.add_argument("--model", default="local", help="whose tokenizer counts (see rlm-loop models list)")
    options = parser.parse_args()
    if not options.table:
        counts = LocalModel(options.model, context_size=512, threads=1).measure
        pd.DataFrame(rows(counts)).to_csv(RESULTS / "scripted.csv", index=False, lineterminator="\n")
        save(overhead_by_turn(recorded(), arms=("lean", "mellea-react")), FIGURES / "overhead.png")
    print(overhead_table(recorded()).to_markdown())


if __name__ == "__main__":
    main()
