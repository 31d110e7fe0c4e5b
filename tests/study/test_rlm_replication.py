"""The replication of recursive language models: the oracle in each framework's form, drivers, the committed rows."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.tasks import get_suite
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.long_context.oracle import PART

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "rlm_replication"
PEERS = ROOT / "experiments" / "peers"
OWN = ("arms", "build", "contenders", "driving", "job", "oracle", "records", "run", "tables")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """`run.py`, with the modules that it takes by name; returned as it is imported."""
    before = {name: sys.modules.pop(name, None) for name in OWN}
    monkeypatch.setattr(sys, "path", [str(HERE), str(PEERS), str(ROOT), *sys.path])
    yield importlib.import_module("run")
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def asked(text: str) -> Prompt:
    return Prompt((Message("user", (Span(text, "task"),)),))


class Submitted(BaseException):
    """What a framework's own end raises."""


def performed(framework: str, oracle: Any, question: str, text: str) -> Any:
    """The oracle's cell, run as the framework would: with its variable, its sub-calls and its end."""

    def submit(value: str) -> None:
        raise Submitted(value)

    def ask(*parts: str) -> str:
        return oracle.complete(asked("\n\n".join(reversed(parts)))).text

    cell = oracle.complete(asked(question)).text.split("```")[1].partition("\n")[2]
    answer: dict[str, Any] = {}
    known: dict[str, Any] = {"context": text, "input_0": text, "answer": answer, "llm_query": ask, "sub_llm": ask}
    known |= {"SUBMIT": submit, "FINAL": submit, "search": lambda *_: ""}
    with contextlib.suppress(Submitted):
        try:
            exec(cell, known)
        except Submitted as ended:
            return ended.args[0]
    return answer["content"] if answer.get("ready") else None


@pytest.mark.parametrize("framework", ["rlms", "dspy_rlm", "minrlm"])
@pytest.mark.parametrize("family", ["needle", "needles", "chain", "records", "pairs", "classify"])
def test_the_oracle_is_right_in_every_form(own: ModuleType, framework: str, family: str) -> None:
    oracle = sys.modules["oracle"].FrameworkOracle(framework)
    for task in get_suite(f"long_context/{family}@32k", tasks=4).tasks:
        answer = performed(framework, oracle, task.question, task.material())
        assert task.judge(Attempt(answer, answered=True)).resolved, (task.id, answer)


def test_only_labels_that_no_pattern_gives_are_asked_for(own: ModuleType) -> None:
    oracle = sys.modules["oracle"].FrameworkOracle("rlms")
    asks = {
        f: "llm_query" in oracle.complete(asked(get_suite(f"long_context/{f}@8k").tasks[0].question)).text
        for f in own.SHAPES
    }
    assert asks == {f: f == "classify" for f in own.SHAPES}
    question = get_suite("long_context/classify@8k").tasks[0].question
    assert isinstance(json.loads(oracle.complete(asked(f"Entry #1: none\n\n{PART}{question}")).text), list)


@pytest.mark.parametrize("depth", [0, 1])
def test_our_loop_goes_through_the_meter_with_its_text_and_depth(own: ModuleType, depth: int, tmp_path: Path) -> None:
    ((_, task),) = own.tasks_of(["records"], ["8k"], 1)
    (arm,) = own.chosen(f"ours-{depth}")
    options = argparse.Namespace(steps=4, max_tokens=600, cache=tmp_path)
    row = own.attempt(arm, task, own.model_of(arm, "oracle", None), options)
    assert (row["resolved"], row["error"], row["calls"]) == (True, None, 1 + depth)
    assert row["input_tokens"] > 0


def test_minrlm_is_called_by_its_documented_interface(own: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class RLM:
        def __init__(self, model: str, *, base_url: str, api_key: str, max_iterations: int, temperature: float) -> None:
            seen["made"] = (model, base_url, api_key, max_iterations, temperature)

        def completion(self, task: str, context: str = "") -> Any:
            seen["asked"] = (task, context)
            return types.SimpleNamespace(response="13", input_tokens=7)

    package = types.ModuleType("minrlm")
    package.RLM = RLM  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "minrlm", package)
    monkeypatch.syspath_prepend(str(PEERS / "drivers"))
    spec = importlib.util.spec_from_file_location("minrlm_driver", PEERS / "drivers" / "minrlm.py")
    assert spec is not None
    assert spec.loader is not None
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    job = {"model": "m", "url": "http://here/v1", "key": "k", "steps": 6, "temperature": 0.0, "seed": 0}
    done = driver.play({**job, "task": "How many?", "context": "a long text"})
    assert seen == {"made": ("m", "http://here/v1", "k", 6, 0.0), "asked": ("How many?", "a long text")}
    assert done == {"answer": "13", "reported_input_tokens": 7}


def test_the_committed_rows_are_whole_and_the_readme_has_their_table(own: ModuleType) -> None:
    rows = own.rows_of(own.ORACLE)
    arms = [a.name for a in own.ARMS]
    assert Counter(r["arm"] for r in rows) == dict.fromkeys(arms, 6)
    assert {r["model"] for r in rows} == {"oracle (scripted, no language model)"}
    assert [r for r in rows if r["error"] or not r["resolved"]] == []
    readme = (HERE / "README.md").read_text("utf-8")
    assert own.table(rows).to_markdown() in readme
    assert own.table(own.rows_of(own.LOCAL)).to_markdown() in readme


def test_the_table_is_paired_against_the_baseline(own: ModuleType) -> None:
    about = {"suite": "s", "family": "needle", "input_tokens": 10, "output_tokens": 1, "calls": 1}
    rows = [{**about, "task": n, "arm": own.BASELINE, "resolved": n > 0} for n in range(7)]
    rows += [{**about, "task": n, "arm": "rlms", "resolved": n == 0} for n in range(7)]
    line = next(r for r in own.table(rows).rows if r[0] == "rlms")
    assert line[1] == "1 of 7"
    assert line[3].startswith("-71 [")
    assert line[4] == "0.12"
