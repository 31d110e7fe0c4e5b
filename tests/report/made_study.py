"""A small study that has been run, with something missing, and texts that would like to act on a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlm_loop import DirectAgent, Suite, Task
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


def made_study(folder: Path, *, whole: bool = False, question: str = QUESTION, **options: Any) -> Path:
    """Two suites of six tasks each, three arms; unless `whole`, one episode has crashed and one was not judged."""
    tasks = {s: tuple(Task(f"{s}-{i}", f"Is it {s}-{i}? {HOSTILE}", judge) for i in range(6)) for s in ("easy", "hard")}
    gone = ModelError(f"the provider is gone {HOSTILE}")
    replies: dict[str, dict[str, str | Exception]] = {
        "hasty": {"hard-1": "no", "hard-2": "no"},
        "careful": {"easy-3": "yes" if whole else gone, "hard-2": "no"},
        "<b>late": {"easy-4": "yes" if whole else "maybe", "hard": "no"},
    }
    arms = {name: DirectAgent(model=Says("local:scripted", of, n)) for n, (name, of) in enumerate(replies.items(), 1)}
    suites = [Suite(name, of) for name, of in tasks.items()]
    Study("small & <i>odd</i>", arms, suites, **options).run(folder, False)
    if question:
        lock = json.loads((folder / "study.json").read_text())
        (folder / "study.json").write_text(json.dumps({**lock, "question": question}))
    return folder
