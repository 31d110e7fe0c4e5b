"""A session of ten calls by script, as each loop makes it: one call a turn, several calls in a reply, or one cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from folder import ORDERS, files

from rlm_loop.accounting import Part
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.models import ScriptedModel

Counts = Callable[[Prompt], list[Part]]
Call = tuple[str, dict[str, Any]]


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


@dataclass(frozen=True)
class Session:
    """What is asked, the calls in order, the answer, and the cell that makes all calls after the first.

    The first call is one that the others depend on, so that no loop could make all of them at once.
    """

    question: str
    calls: Sequence[Call]
    cell: str
    answer: Any

    def native(self) -> list[Reply]:
        """Native tool calls, one a reply."""
        return [Reply("", (_native(n, call),)) for n, call in enumerate(self._all())]

    def parallel(self) -> list[Reply]:
        """Native tool calls, as many in a reply as can be: the first, the others, the answer."""
        first, *others, last = (_native(n, call) for n, call in enumerate(self._all()))
        return [Reply("", (first,)), Reply("", tuple(others)), Reply("", (last,))]

    def as_text(self) -> list[Reply]:
        """Calls written as JSON, one a reply, as small models write them."""
        return [Reply(json.dumps({"name": name, "arguments": arguments})) for name, arguments in self._all()]

    def cells(self) -> list[Reply]:
        """A cell for each call, which prints what it returns, and one for the answer."""
        lines = [f"print({_python(call)})" for call in self.calls]
        return [_block(line) for line in [*lines, f"final_answer = {self.answer!r}"]]

    def one_cell(self) -> list[Reply]:
        """A cell for the first call, and one for all the others and the answer."""
        return [_block(f"print({_python(self.calls[0])})"), _block(self.cell)]

    def _all(self) -> list[Call]:
        return [*self.calls, ("final_answer", {"answer": self.answer})]


def _native(number: int, call: Call) -> ToolCall:
    return ToolCall(f"call_{number}", call[0], json.dumps(call[1]))


def _python(call: Call) -> str:
    return f"{call[0]}({', '.join(f'{name}={value!r}' for name, value in call[1].items())})"


def _block(code: str) -> Reply:
    return Reply(f"```python\n{code}\n```")


_READ = [path for path in files() if path.endswith(".csv")]
#: List the folder, read eight tables, list another folder; count the orders of 2026.
SHOP = Session(
    "How many orders of 2026 are in the tables of this folder? Read all tables, those in archive too.",
    [
        ("list_directory", {"path": "."}),
        *(("read_text_file", {"path": path}) for path in _READ),
        ("list_directory", {"path": "archive"}),
    ],
    f"paths = {_READ!r}\n"
    "texts = {path: read_text_file(path=path) for path in paths}\n"
    'listed = list_directory(path="archive")\n'
    "final_answer = sum(len(text.splitlines()) - 1 for path, text in texts.items() if path.startswith('orders-2026'))",
    sum(map(len, ORDERS.values())),
)
