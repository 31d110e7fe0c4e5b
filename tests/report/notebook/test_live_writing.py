"""A reply while it is written: what is shown of it, and what never is."""

from __future__ import annotations

import re
import sys
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from rlm_loop import ToolLoopAgent
from rlm_loop.accounting import Ledger
from rlm_loop.cli.run import WRITTEN, LiveSteps
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model
from rlm_loop.models.listening import Kind, tell
from rlm_loop.report import LiveView
from rlm_loop.report.notebook.live import KEPT, Writing

KEY = "sk-proj-" + "aB3" * 12
Told = tuple[Kind, str]
BEGIN: Told = ("begin", "")


def after(*told: Told) -> Writing:
    writing = Writing()
    for kind, text in told:
        writing = writing.heard(kind, text)
    return writing


MOMENTS: list[tuple[tuple[Told, ...], str, str]] = [
    ((), "the model writes, its code runs", ""),
    ((BEGIN,), "waiting for the model", ""),
    ((BEGIN, ("loading", "m.gguf")), "loading the model (m.gguf)", ""),
    ((BEGIN, ("thinking", "Let me ")), "the model thinks, 7 characters", "Let me "),
    ((BEGIN, ("text", "I look"), ("text", " here")), "the model writes, 11 characters", "I look "),
    ((BEGIN, ("call", "\nadd "), ("call", '{"a": 1}')), "the model writes a call, 13 characters", 'add {"a": '),
    ((("text", "I look"), ("end", "")), "the reply is there, its code runs, 6 characters", "I look"),
    ((("text", "Half a re"), ("retry", "asked again: it broke off")), "asked again: it broke off", ""),
    ((("text", "one call"), BEGIN, ("text", "the next one")), "the model writes, 12 characters", "the next "),
]


@pytest.mark.parametrize(("told", "doing", "shown"), MOMENTS)
def test_what_a_moment_shows(told: tuple[Told, ...], doing: str, shown: str) -> None:
    writing = after(*told)
    assert (str(writing), writing.shown) == (doing, shown)


def test_a_key_is_never_shown_in_part_and_of_a_long_reply_only_the_end_is_kept() -> None:
    text = f"The key is {KEY} and that is it. "
    for cut in range(len(text)):
        shown = after(("text", text[:cut])).shown
        assert not any(KEY[: size + 8] in shown for size in range(1, 8)), shown
    assert KEY not in after(("text", text), ("end", "")).shown
    writing = after(*[("text", "word ")] * 10_000)
    assert (len(writing.text), writing.length) == (KEPT, 50_000)


class Typing(Model):
    """A model that tells its reply letter by letter, as one that streams does."""

    name = "typing"
    immediate = True

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        text = self.replies.pop(0)
        for letter in text:
            tell("text", letter)
        return Reply(text, usage=Usage(10, 5))


def test_the_live_view_shows_a_reply_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display", reason='pip install -e ".[notebooks]"')
    pages: list[str] = []
    handle = SimpleNamespace(update=lambda part, **_: pages.append(part["text/html"]))
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=True))
    monkeypatch.setattr(display, "display", lambda *_, **__: handle)
    model = Typing("I look.\n```python\nfinal_answer = llm_query('?')\n```\n", "a sub-call's reply")
    outcome = ToolLoopAgent(model=model).run("?", hooks=(LiveView(every=0.0),))
    assert outcome.answer == "a sub-call's reply"
    under_way = [page for page in pages if "<progress" in page]
    assert any("I look." in page and "the model writes" in page for page in under_way)
    assert not any("sub-call&#39;s" in page for page in under_way[:-1])  # one reply is shown, the root's
    of_reply = next(page for page in under_way if "the reply is there" in page)
    assert "template" in of_reply  # billed before anybody reads it


def test_the_terminal_shows_the_last_lines_of_a_reply() -> None:
    page = StringIO()
    live = LiveSteps(Console(file=page, width=80, force_terminal=True))
    live.on_run_start(agent="a", model="m", ledger=Ledger())
    live.on_step_start(turn_index=1)
    assert live.on_text is not None
    live.on_text(kind="begin", text="", node="0")
    for line in range(WRITTEN + 5):
        live.on_text(kind="text", text=f"line-{line}\n", node="0")
    live.stop()  # which draws it once more
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", page.getvalue()).rpartition("turn 1")[2]
    said = (": the model writes", "line-16", "line-4\n")
    assert [part in last.replace("\r", "") for part in said] == [True, True, False]
    assert LiveSteps(Console(file=page)).on_text is None  # without a terminal nothing is asked for
