"""What makes a study the same one: whatever decides its rows is recorded, and a change of it refuses to go on."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite, task

from rlm_loop import DirectAgent, ScriptedModel, ToolLoopAgent
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import LocalModel, Model
from rlm_loop.repl import Hardened
from rlm_loop.study import Study, StudyError, StudyWarning, load_study
from rlm_loop.tasks import Attempt, Score, Suite, Task

LIMIT = 3


def close(attempt: Attempt, truth: str, least: float = 1.0) -> Score:
    return Score(float(attempt.answer == truth) >= least)


def ends(attempt: Attempt) -> Score:
    return Score(str(attempt.answer).endswith("t"), LIMIT)


@dataclass(frozen=True)
class Rule:
    truth: Any
    log: list[str] = field(default_factory=list, compare=False)

    def __call__(self, attempt: Attempt) -> Score:
        self.log.append("scored")
        return Score(attempt.answer == self.truth)

    def method(self, attempt: Attempt) -> Score:
        return Score(attempt.answer != self.truth)


def one(score: Callable[[Attempt], Score], expected: Any = (1, 2)) -> Study:
    tasks = (Task("t", "Please repeat answer-t", score, expected), Task("u", "Say it", score, 1))
    return Study("mine", {"a": Arm()}, Suite("s", tasks))


def made(text: str) -> Any:
    names: dict[str, Any] = {"Score": Score, "__name__": "users_own"}
    exec(text, names)
    return names["score"]


def versioned(version: int) -> Any:
    score = made("def score(a): return Score(True)")
    score.version = version
    return score


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (functools.partial(close, truth="a"), functools.partial(close, truth="b")),
        (functools.partial(close, truth="a"), functools.partial(close, truth="a", least=0.5)),
        (close, ends),
        (Rule("a"), Rule("b")),
        (Rule(["a"]).method, Rule(["a"])),
        (lambda a: Score(True), lambda a: Score(False)),
        (made("def score(a): return Score(a == 1)"), made("def score(a): return Score(a == 2)")),
        (versioned(1), versioned(2)),
    ],
)
def test_a_changed_scorer_or_truth_refuses_to_go_on(tmp_path: Path, was: Any, now: Any) -> None:
    one(was).run(tmp_path, False, limit=1)
    with pytest.raises(StudyError, match=r"changed: scorers\.s\.t\); choose another folder"):
        one(now).run(tmp_path, False, mixed=True)
    with pytest.raises(StudyError, match=r"changed: truths\.s\.t"):
        one(was, (1, 3)).run(tmp_path, False)
    assert len(one(was).run(tmp_path, False)) == 2


SOURCE = """
from dataclasses import dataclass
UNUSED = {unused!r}

@dataclass
class Scorer:
    truth: str
    words: set

    def __call__(self, attempt):  # {comment}
        return attempt.answer == self.truth or attempt.answer in self.words

score = Scorer("a", {words!r})
print(__import__("rlm_loop.tasks.scorer_mark").tasks.scorer_mark.mark_of(score))
"""


def test_comments_other_names_and_the_process_make_no_difference(tmp_path: Path) -> None:
    def mark(**change: Any) -> str:
        file = tmp_path / "mine.py"
        file.write_text(SOURCE.format(**{"words": {"x", "y"}, "unused": 1, "comment": "one", **change}))
        return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True).stdout

    first = mark()
    assert mark(comment="two", unused=2) == first
    assert mark(words={"x", "z"}) != first


def test_a_scorer_that_counts_is_the_same_one(tmp_path: Path) -> None:
    seen: list[str] = []

    def counting(attempt: Attempt) -> Score:
        seen.append(attempt.answer)
        return Score(True)

    study = one(counting)
    study.run(tmp_path, False, limit=1)
    assert (bool(seen), len(study.run(tmp_path, False))) == (True, 2)


def test_values_of_all_kinds_have_a_mark(tmp_path: Path) -> None:
    looped: list[Any] = [1]
    looped.append(looped)
    values = [None, 1, True, 1.0, "1", b"1", [1], (1, 2), {1: 2}, {3}, looped, re.compile("a"), Path("a"), len, object]
    tasks = Suite("s", tuple(Task(str(i), "Say it", Rule(v)) for i, v in enumerate(values)))
    study = Study("mine", {"a": Arm()}, tasks)
    study.run(tmp_path, False, limit=len(values) - 1)
    assert len(set(study.run(tmp_path, False).lock["scorers"]["s"].values())) == len(values)


@pytest.mark.slow
def test_only_the_code_that_runs_an_episode_is_what_a_study_is(tmp_path: Path) -> None:
    import rlm_loop

    shutil.copytree(Path(rlm_loop.__file__).parent, tmp_path / "rlm_loop")
    ask = "from rlm_loop import *; print(Study('s', {'a': DirectAgent('m')}, Task('t', '?', 1)).identity)"
    found: list[str] = []
    for room in ("", "report", "study", "agents"):
        with (tmp_path / "rlm_loop" / room / "__init__.py").open("a") as file:
            file.write("# a comment\n")
        found.append(subprocess.check_output([sys.executable, "-c", ask], cwd=tmp_path, text=True))
    assert found[0] == found[1] == found[2] != found[3]


def test_other_code_is_gone_on_with_on_request_only(tmp_path: Path) -> None:
    study, said = Study("mine", {"a": Arm()}, suite("s", 2)), r"it was begun with another rlm-loop \(0\.0\.1, "
    study.run(tmp_path, False, limit=1)
    lock = json.loads((tmp_path / "study.json").read_text())
    lock["package"] |= {"version": "0.0.1", "code": "0" * 16}
    (tmp_path / "study.json").write_text(json.dumps(lock))
    assert len(study.run(tmp_path, False, limit=1)) == 1  # nothing is added: nothing is mixed
    with pytest.raises(StudyError, match=said):
        study.run(tmp_path, False)
    with pytest.warns(StudyWarning, match=said):
        assert len(study.run(tmp_path, False, mixed=True)) == 2
    assert re.search(said, load_study(tmp_path).lock["sessions"][-1]["mixed"])


class Weights(LocalModel):
    weights_hash = None

    def __init__(self, weights_hash: str | None = "aa", slots: int = 1) -> None:
        super().__init__("mine.gguf", slots=slots)
        self.weights_hash = weights_hash


@pytest.mark.parametrize(("now", "said"), [(Weights("bb"), "weights"), (Weights(slots=8), "slots")])
def test_other_weights_or_slots_refuse_to_go_on(tmp_path: Path, now: Weights, said: str) -> None:
    def study(model: Weights) -> Study:
        return Study("mine", {"a": Arm(model=model)}, suite("s", 2))

    study(Weights()).run(tmp_path, False, limit=1)
    with pytest.raises(StudyError, match=f"changed: {said} of local:mine.gguf"):
        study(now).run(tmp_path, False)
    assert len(study(Weights(weights_hash=None)).run(tmp_path, False)) == 2  # not here, so nothing is known of them


def test_the_weights_of_a_file_are_what_a_study_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"weights")

    def known(name: str, model: Any) -> Any:
        return Study("mine", {"a": Arm(model=model)}, suite("s", 1)).run(tmp_path / name, False).lock["local_models"]

    (found,) = known("one", f"local:{file}").values()
    assert (len(found["weights"]), found["slots"]) == (64, 1)
    file.write_bytes(b"others")
    assert known("two", f"local:{file}")["local:mine.gguf"]["weights"] != found["weights"]
    assert known("four", f"local:{tmp_path}/gone.gguf") == {"local:gone.gguf": {"weights": None, "slots": 1}}
    assert known("five", "openai/gpt-5-nano") == known("six", "nonsense") == known("seven", None) == {}


@dataclass
class Nano(Model):
    version: str
    name: str = "openai/nano"

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        return Reply("no", extra={"model": self.version})


def test_a_provider_that_changed_its_model_ends_the_run(tmp_path: Path) -> None:
    def ran(version: str) -> Any:
        study = Study("mine", {"a": DirectAgent(model=Nano(version))}, suite("s", 4))
        return study.run(tmp_path, False, limit=len(load_study(tmp_path)) + 1 if version else 1).lock

    ran("")
    assert ran("nano-1")["model_versions"] == {"openai/nano": ["nano-1"]}
    ran("nano-1")
    with pytest.raises(StudyError, match="answers as nano-2, the rows of this folder are of nano-1"):
        ran("nano-2")


def test_a_study_goes_on_where_cells_are_kept_apart_otherwise_and_each_row_says_how(tmp_path: Path) -> None:
    if problem := Hardened().problem(sys.executable):
        pytest.skip(problem)
    agent = ToolLoopAgent(ScriptedModel(["```python\nfinal_answer = '1'\n```"] * 2), repl="plain")
    study = Study("mine", {"code": agent}, Suite("s", (task("one", "1"), task("two", "1"))))
    study.run(tmp_path, False, limit=1)
    rows = replace(study, arms={"code": replace(agent, repl="hardened")}).run(tmp_path, False).rows
    assert [(row["isolation"], row["resolved"]) for row in rows] == [("plain", True), ("hardened", True)]
