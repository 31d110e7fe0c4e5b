"""The scripted session: the same 25 equal actions, each answered in a framework's own reply format.

Every turn has the same short thought, one action (one line of code, one command or one call of one tool) and gets the
same observation, a text of fixed size.  The actions count up, because some loops stop a model that repeats itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from rlm_loop.messages import Reply, ToolCall

TASK = "Look at the records one after the other and say whether they are in order."
THOUGHT = "I look at the next record."
ANSWER = "in order"
SENTENCE = "The record is in order."
SENTENCES = 12
OBSERVATION = " ".join([SENTENCE] * SENTENCES)

#: A piece of a reply: the ways in which a framework may show it again, the first that is found counts.
Piece = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A reply, the pieces of it that are the model's own words, in their order, and whether it gets the observation."""

    reply: Reply
    pieces: tuple[Piece, ...]
    observed: bool = True

    def without_calls(self) -> Step:
        """For a framework that does not send the model's calls back to it: only the text is left of them."""
        return replace(self, pieces=self.pieces[:1]) if self.reply.tool_calls else self


def session(form: str, turns: int = 25) -> list[Step]:
    """`turns` actions and the end, in this form.  A framework that asks once more afterwards gets that reply, too."""
    ends = [replace(step, observed=False) for step in _end(form)]
    return [*(_action(form, number) for number in range(1, turns + 1)), *ends]


def _code(number: int) -> str:
    return f"print(' '.join(['{SENTENCE}'] * {SENTENCES}))  # {number}"


def _command(number: int) -> str:
    return f"cat record.txt  # {number}"


def _action(form: str, number: int) -> Step:
    if form in _FENCES:
        before, after = _FENCES[form]
        return _written(f"{THOUGHT}\n{before}\n{_code(number)}\n{after}")
    if form == "command":
        return _written(f"{THOUGHT}\n\n```mswea_bash_command\n{_command(number)}\n```")
    if form == "fields_code":
        return _fields(reasoning=THOUGHT, code=_code(number))
    if form == "fields_calls":
        return _fields(next_thought=THOUGHT, next_tool_name="look", next_tool_args=json.dumps({"number": number}))
    if form == "bash_call":
        return _call(number, "bash", command=_command(number))
    return _call(number, "look", number=number)


def _end(form: str) -> list[Step]:
    if form == "repl":
        return [_written(f'{THOUGHT}\n```repl\nanswer["content"] = "{ANSWER}"\nanswer["ready"] = True\n```')]
    if form == "tags":
        return [_written(f'{THOUGHT}\n<code>\nfinal_answer("{ANSWER}")\n</code>')]
    if form == "python":
        return [_written(f'{THOUGHT}\n```python\nfinal_answer = "{ANSWER}"\n```')]
    submit = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo {ANSWER}"
    if form == "command":
        return [_written(f"{THOUGHT}\n\n```mswea_bash_command\n{submit}\n```")]
    if form == "bash_call":
        return [_call(0, "bash", command=submit)]
    if form == "fields_code":
        return [_fields(reasoning=THOUGHT, code=f'SUBMIT("{ANSWER}")')]
    if form == "fields_calls":
        finish = _fields(next_thought=THOUGHT, next_tool_name="finish", next_tool_args="{}")
        return [finish, _fields(reasoning=THOUGHT, answer=ANSWER)]
    if form == "calls_final":
        return [_call(0, "final_answer", answer=ANSWER)]
    return [_written(ANSWER)]


_FENCES = {"repl": ("```repl", "```"), "tags": ("<code>", "</code>"), "python": ("```python", "```")}


def _written(text: str) -> Step:
    return Step(Reply(text), ((text,),))


def _fields(**fields: str) -> Step:
    """dspy's own format.  It shows the fields again one by one, in its history of the session."""
    marked = [f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items()]
    return Step(Reply("\n\n".join([*marked, "[[ ## completed ## ]]"])), tuple((text,) for text in fields.values()))


def _call(number: int, tool: str, /, **arguments: str | int) -> Step:
    """A native tool call.  Where a framework shows it again as text, name and arguments are the model's own words."""
    written = json.dumps(arguments)
    reply = Reply(THOUGHT, (ToolCall(f"call_{number}", tool, written),), "tool_calls")
    return Step(reply, ((THOUGHT,), (f"'{tool}'", f'"{tool}"'), (written, repr(arguments))))
