"""Two overheads, kept apart: the text that a loop adds to its requests, and the calls that it makes besides them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlm_loop.accounting.ledger import Ledger
from rlm_loop.messages import Usage

if TYPE_CHECKING:
    import pandas as pd

#: The purpose of a loop's own requests, one a turn.
OWN = "agent"


@dataclass(frozen=True)
class Overhead:
    """What a run cost besides the task.

    `text` are the input tokens of system text and injectors by cause, each time they were sent, in the loop's own
    requests (one a turn); `requests` are these, all their input and output together.
    `extra_calls` are all other calls by purpose: `compaction` (a summary of the history), `llm_query` (what cells asked
    of a sub-model or sub-agent, all its turns), and any other that a loop makes, such as extraction or planning.
    Tokens that a provider did not report are `None` in the usage, never zero.
    """

    text: dict[str, int] = field(default_factory=dict[str, int])
    requests: Usage = field(default_factory=Usage.nothing)
    extra_calls: dict[str, Usage] = field(default_factory=dict[str, Usage])

    @property
    def text_tokens(self) -> int:
        """Input tokens of all added text."""
        return sum(self.text.values())

    @property
    def calls(self) -> int:
        """How many extra calls there were."""
        return sum(u.calls for u in self.extra_calls.values())

    def frame(self) -> pd.DataFrame:
        """One row a cause of text or purpose of extra calls: `kind, what, calls, input_tokens, output_tokens`."""
        import pandas as pd

        rows: list[Sequence[object]] = [("text", cause, self.requests.calls, n, 0) for cause, n in self.text.items()]
        rows += [("calls", p, u.calls, u.input_tokens, u.output_tokens) for p, u in self.extra_calls.items()]
        return pd.DataFrame(rows, columns=["kind", "what", "calls", "input_tokens", "output_tokens"])


def overhead(ledger: Ledger) -> Overhead:
    """The overhead in a ledger, text apart from extra calls."""
    found = Overhead()
    own = Usage.nothing()
    for call in list(ledger.calls):
        if call.purpose != OWN:
            before = found.extra_calls.get(call.purpose, Usage.nothing())
            found.extra_calls[call.purpose] = before + call.usage
            continue
        own += call.usage
        for row in call.rows:
            if row.cause == "system" or row.cause.startswith("scaffold:"):
                found.text[row.cause] = found.text.get(row.cause, 0) + row.tokens
    return Overhead(found.text, own, found.extra_calls)
