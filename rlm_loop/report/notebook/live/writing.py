"""A reply while the model writes it, told by the hook `on_text`: what goes on, and the end of the text so far."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rlm_loop.report.notebook.formatting import visible

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
    """One moment of a reply: `doing` in a few words, the end of the `text` so far, and its length in characters."""

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
            case "end":
                return replace(self, doing=_DOING[kind])
            case _:
                return Writing(_DOING.get(kind, self.doing), (self.text + text)[-KEPT:], self.length + len(text))

    @property
    def shown(self) -> str:
        """The text as it may be shown: no secrets, nothing that steers a terminal."""
        return visible(self.text if self.doing == _DOING["end"] else _UNFINISHED.sub("", self.text)).strip("\n")

    def __str__(self) -> str:
        return f"{self.doing}, {self.length:,} characters" if self.length else self.doing
