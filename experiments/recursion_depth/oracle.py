"""A scripted oracle in the place of a model.  It is no language model: what it resolves says nothing about one.

It reads prompts of known shape (the questions of these suites, as the loop puts them) and answers by code, exactly for
whatever text is in the prompt.  What is left to see is the loop itself: which part of a text depth and window let
it look at, and what that costs in calls and tokens.
"""

from __future__ import annotations

import json

from experiments.recursion_depth.readers import Reader, reader_in
from rlm_loop.accounting import Part
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model, ModelError, RequestRejected, ScriptedModel, text_tokens

#: What stands before a question about a part of the text.
PART = "This is a part of a longer text; answer for this part only, as a JSON list of what was found. "

_PARTS = """import json
def parts(text, size):
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):  # never in the middle of a line
            end = text.rfind("\\n", start, end) + 1 or end
        yield text[start:end]
        start = end
"""
_ASK_EACH = """prompts = [p + "\\n\\n" + question for p in parts(context, {size})]
try:
    replies = llm_query_batched(prompts)
except NameError:
    replies = [llm_query(p) for p in prompts]
"""
_ASK_AGENTS = """count = -(-len(context) // {size})
size = {size} * max(1, round(count ** 0.5))
pieces = list(parts(context, size))
replies = llm_query_batched([question] * len(pieces), pieces)
"""
_ITEMS = "items = [x for r in replies for x in json.loads(str(r))]\n"


class Oracle(Model):
    """A `Model` with a window of `window` tokens (4 characters each, as `ScriptedModel` counts).

    Where it is offered `llm_query` it splits the text into pieces of `piece` characters and asks for each; with
    `levels=2` into fewer, larger ones for sub-agents, which split them again.  Without, it reads by code what code can
    read, and prints as much of the rest as fits its window.
    """

    name = "oracle (scripted, no language model)"
    price = (0.0, 0.0)
    window: int

    def __init__(self, *, window: int = 4_096, piece: int = 8_000, levels: int = 1) -> None:
        self.window, self.piece, self.levels = window, piece, levels
        self._counting = ScriptedModel([], name=self.name)

    def measure(self, prompt: Prompt) -> list[Part]:
        """The parts of the prompt by `ScriptedModel`'s rule."""
        return self._counting.measure(prompt)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The exact answer for the text in the prompt, or the code that finds it.

        Raises `RequestRejected` for a prompt above the window, `ModelError` for one of another shape.
        """
        entered = sum(part.tokens for part in self.measure(prompt))
        if entered > self.window:
            raise RequestRejected(f"the oracle has a window of {self.window} tokens, not {entered}", self.name)
        text = self._reply(prompt, self.window - entered)
        left = text_tokens(text)
        if max_tokens is not None and left > max_tokens:
            return Reply(text[: 4 * max_tokens], finish_reason="length", usage=Usage(entered, max_tokens, 0))
        return Reply(text, usage=Usage(entered, left, 0))

    def _reply(self, prompt: Prompt, room: int) -> str:
        said = [m.text for m in prompt.messages if m.role == "user"]
        rule = "\n".join(m.text for m in prompt.messages if m.role == "system")
        loop = "REPL" in rule
        question, reader = reader_in(said[0], last=not loop)
        if reader is None:
            raise ModelError(f"the oracle knows the questions of long_context only, not {said[0][-80:]!r}", self.name)
        part = PART in said[0]
        if not loop:  # the text is in the prompt
            finds = reader.finds(said[0].replace(question, ""))
            return json.dumps(reader.joined(finds)) if part else str(reader.answer(finds))
        if len(said) > 1:  # the text was printed
            finds = reader.finds(said[-1])
            return _fenced(f"final_answer = {json.dumps(finds) if part else reader.answer(finds)!r}")
        if "llm_query" in rule:
            return _fenced(self._asking(question, reader, part))
        if reader.by_code and not part:
            return _fenced(reader.program())
        return _fenced(f"print(context[:{4 * (room - 256)}])")

    def _asking(self, question: str, reader: Reader, part: bool) -> str:
        """Code that asks for every piece and joins the answers; in a sub-agent what is joined stays a list of finds."""
        ask = _ASK_AGENTS if self.levels > 1 and not part else _ASK_EACH
        joined = "[sum(items)]" if reader.additive else "items"
        end = f"final_answer = json.dumps({joined})" if part else reader.ending()
        return f"{_PARTS}question = {PART + question!r}\n{ask.format(size=self.piece)}{_ITEMS}{end}"


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"
