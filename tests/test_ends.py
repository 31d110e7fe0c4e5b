"""What a run comes to where it does not come to an answer: what is shown, what is never taken for an answer, and why it
ended."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.models.scripted import ScriptedModel
from rlm_loop.outcome import Outcome

CODE = "```python\nprint({})\n```"


def runs(agent: type[Any], *replies: str, **settings: Any) -> Outcome:
    return agent(model=ScriptedModel(list(replies)), **{"repl": "plain", **settings}).run("How much is it?")


@pytest.mark.parametrize(
    ("agent", "replies", "answer"),
    [
        (ToolLoopAgent, [CODE.format(1), CODE.format(2)], None),
        (ToolLoopAgent, ["Let me look.\n" + CODE.format(1), "And again.\n" + CODE.format(2)], None),
        (ToolLoopAgent, ["```python\nfinal_answer = 42\n1 / 0\n```", CODE.format(2)], 42),
        (ToolLoopAgent, ["```bash\nls\n```", "```bash\nls -l\n```"], None),
        (LeanAgent, ['{"name": "python", "arguments": {"code": "1"}}', '{"name": "python", "argum'], None),
        (ReActAgent, ["Thought: I look.\nAction: python\nAction Input: 1"] * 2, None),
        (ReActAgent, ["Thought: it is 42, I think."] * 2, "Thought: it is 42, I think."),
    ],
)
def test_at_a_limit_code_is_never_the_answer(agent: type[Any], replies: list[str], answer: Any) -> None:
    outcome = runs(agent, *replies, budget=Budget(steps=2))
    assert (outcome.stop, outcome.answer, outcome.last_reply) == ("steps", answer, replies[-1])


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("```", "Only ```python blocks are run, and there is none."),
        ("~~~\n", "Only ```python blocks are run, and there is none."),
        ("```json\n```", "Only ```python blocks are run, and there is none."),
        ("```python\n```", "The code block is empty."),
        ("```bash\nls\n```", "Only ```python blocks are run, not ```bash."),
        ("I look first:\n```sh\ncat a.txt\n```", "Only ```python blocks are run, not ```sh."),
        ("```shell\nls\n```\nIt is 42.", "Only ```python blocks are run, not ```shell."),
    ],
)
def test_a_reply_without_a_python_block_that_tries_one_is_no_answer(reply: str, told: str) -> None:
    outcome = runs(ToolLoopAgent, reply, "```python\nfinal_answer = 42\n```")
    assert (outcome.stop, outcome.answer) == ("answered", 42)
    assert [o.text for o in outcome.turns[0].observations] == [told]


@pytest.mark.parametrize("reply", ["It is 42.", "```json\n[1, 2]\n```", "42\n```"])
def test_prose_and_data_are_answers_still(reply: str) -> None:
    assert runs(ToolLoopAgent, reply).answered
    assert runs(DirectAgent, reply).answered


def test_refused_answers_are_called_so() -> None:
    outcome = runs(ToolLoopAgent, "It is a lot.", "It is more.", "It is most.", answer_type=int)
    assert outcome.stop == "malformed"
    assert outcome.reason.startswith("3 refused answers in a row; the last: The answer does not fit")
    outcome = runs(ToolLoopAgent, "It is a lot.", "", "```python\n```", answer_type=int)
    assert outcome.reason.startswith("3 refused answers or unreadable replies in a row")
