"""Small studies that have been run, with something missing, and texts that would like to act on a page."""

from __future__ import annotations

from pathlib import Path

from rlm_loop import DirectAgent, Suite, Task, ToolLoopAgent
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model, ModelError
from rlm_loop.study import Study
from rlm_loop.tasks import Attempt, Score

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"> & <b>bold</b>"
QUESTION = "Is the careful loop as good as the hasty one?"


class Says(Model):
    """A model whose reply and tokens depend on the task alone, so that the order of running does not matter."""

    def __init__(self, name: str, replies: dict[str, str | Exception], wordy: int) -> None:
        self.name, self._replies, self._wordy = name, replies, wordy

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        text = prompt.messages[-1].text
        found = next((reply for key, reply in self._replies.items() if key in text), "yes")
        if isinstance(found, Exception):
            raise found
        digits = sum(int(c) for c in text if c.isdigit())
        return Reply(found, usage=Usage(100 * self._wordy + 7 * digits**self._wordy, 3 + digits))


def judge(attempt: Attempt) -> Score:
    if attempt.answer == "maybe":
        return Score(None, 0.0, "nobody can tell")
    return Score(attempt.answer == "yes", float(attempt.answer == "yes"), HOSTILE)


def made_study(folder: Path) -> Path:
    """Two suites of six tasks each, three arms; one episode has crashed and one was not judged."""
    tasks = {s: tuple(Task(f"{s}-{i}", f"Is it {s}-{i}? {HOSTILE}", judge) for i in range(6)) for s in ("easy", "hard")}
    replies: dict[str, dict[str, str | Exception]] = {
        "hasty": {"hard-1": "no", "hard-2": "no"},
        "careful": {"easy-3": ModelError(f"the provider is gone {HOSTILE}"), "hard-2": "no"},
        "<b>late": {"easy-4": "maybe", "hard": "no"},
    }
    arms = {name: DirectAgent(model=Says("local:scripted", of, n)) for n, (name, of) in enumerate(replies.items(), 1)}
    suites = [Suite(name, of) for name, of in tasks.items()]
    Study("small & <i>odd</i>", arms, suites, question=QUESTION).run(folder, False)
    return folder


ASKS = """```python
try:
    found = [llm_query(f"piece {n}") for n in range(3)]
except Exception as error:
    found = ["4", "5", "6"]
print(found)
```"""
ENDS = "```python\nfinal_answer = sum(map(int, found))\n```"


class Asks(Model):
    """Asks for three pieces, then adds up what they are; its reply depends on the prompt alone."""

    name = "local:scripted"

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        last = prompt.messages[-1].text
        text = ENDS if len(prompt.messages) > 2 else last[-1] if last.startswith("piece") else ASKS
        return Reply(text, usage=Usage(sum(len(m.text) for m in prompt.messages), len(text)))


def crossed_study(folder: Path) -> Path:
    """Two tasks, one base arm, two depths by three limits of tokens; sub-calls in two turns."""
    tasks = [Task(f"t{i}", f"What do the pieces of t{i} come to?", lambda a: str(a.answer) == "3") for i in range(2)]
    factors = {"max_depth": [0, 1], "max_tokens": [50, 100, 200]}
    arms = {"code": ToolLoopAgent(model=Asks())}
    Study("crossed", arms, Suite("toy", tasks), factors=factors, question="Q?").run(folder, False)
    return folder
