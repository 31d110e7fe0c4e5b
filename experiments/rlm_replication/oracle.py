"""The oracle of `long_context` in the reply format of each framework.  It is a program, not a language model.

It reads the question off the prompt, and replies with a cell that answers it exactly over the framework's variable: by
code where code can read the text, else by sub-calls for pieces of it, which it answers by code, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.recursion_depth.oracle import PART, Oracle
from experiments.recursion_depth.readers import FOLLOW, Reader, reader_in
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError

PIECE = 8_000


@dataclass(frozen=True)
class Form:
    """How a framework's cells are written: what stands around one, the text's variable, a sub-call, the end, and what
    has to come first."""

    before: str
    after: str
    text: str
    ask: str
    end: str
    first: str = ""


_LLM_QUERY = 'llm_query(piece + "\\n\\n" + question)'
FORMS: Mapping[str, Form] = {
    "rlms": Form(
        "I read the text by code.\n```repl\n",
        "\n```",
        "context",
        _LLM_QUERY,
        'answer["content"] = str(result)\nanswer["ready"] = True',
    ),
    "dspy_rlm": Form(
        "[[ ## reasoning ## ]]\nI read the text by code.\n\n[[ ## code ## ]]\n```python\n",
        "\n```\n\n[[ ## completed ## ]]",
        "context",
        _LLM_QUERY,
        "SUBMIT(str(result))",
    ),
    # A piece is handed over apart from the question: of the question it makes a list of labels, and words in quotes
    # are taken for such.  No answer is taken before the text was looked at.
    "minrlm": Form(
        "```python\n", "\n```", "input_0", "sub_llm(question, piece)", "FINAL(str(result))", "search(input_0, 'the')\n"
    ),
}

_PIECES = """pieces, start = [], 0
while start < len(text):
    end = start + {size}
    if end < len(text):
        end = text.rfind("\\n", start, end) + 1 or end
    pieces.append(text[start:end])
    start = end
items, question = [], {question!r}
for piece in pieces:
    items += json.loads(str({ask}))
"""


class FrameworkOracle(Oracle):
    """The oracle that answers as one framework's model would have to; no prompt is too long for it."""

    def __init__(self, framework: str) -> None:
        super().__init__(window=sys.maxsize)
        self.form = FORMS[framework]

    def _reply(self, prompt: Prompt, room: int) -> str:
        """The finds of a piece, or the cell that answers.  Raises `ModelError` for a question that it does not know."""
        said = "\n".join(m.text for m in prompt.messages if m.role != "system")
        question, reader = reader_in(said, last=True)
        if reader is None:
            raise ModelError(f"the oracle knows the questions of long_context only, not {said[-80:]!r}", self.name)
        asked = next(m.text for m in reversed(prompt.messages) if m.role == "user")
        if PART in asked and "llm_query(" not in said and "sub_llm(" not in said:  # a sub-call, not a cell shown again
            return json.dumps(reader.joined(reader.finds(said.replace(question, ""))))
        return self.form.before + cell(self.form, question, reader) + self.form.after


def cell(form: Form, question: str, reader: Reader) -> str:
    """The code that answers a question over the framework's variable."""
    head = f"{form.first}import json, re\nfrom collections import Counter\n{FOLLOW}\ntext = str({form.text})\n"
    if reader.by_code:
        read = f"items = {reader.read}\n"
    else:
        read = _PIECES.format(size=PIECE, question=PART + question, ask=form.ask)
        read += "items = [sum(items)]\n" if reader.additive else ""
    return f"{head}{read}result = {reader.finish}\n{form.end}"
