"""Published sets: small files of their layouts are read, and answers scored as the sets say."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.study.plan.grid import task_digest
from rlm_loop.tasks import Attempt, Deferred, get_suite
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.published_scores import oolong, ruler, ruler_question

SYNTH: dict[str, Any] = {
    "id": 17,
    "context_len": 1024,
    "dataset": "spam",
    "context_window_text": "The following lines are entries.\nDate: Feb 02, 2023 || User: 7 || Instance: WIN a prize\n",
    "context_window_text_with_labels": "... || Label: spam\n",
    "question": "Which label is most common? Give your final answer in the form 'Label: answer'.",
    "task_group": "counting",
    "task": "TASK_TYPE.MOST_FREQ",
    "answer": "['spam']",
    "answer_type": "ANSWER_TYPE.LABEL",
    "input_subset": "False",
    "num_labels": 2,
    "context_window_id": 3,
}
REAL: dict[str, Any] = {
    "id": "a1",
    "context_window_id": "w",
    "context_window_text": "Episode 1 ...",
    "question": "How many rolls were there?",
    "answer": "84",
    "question_type": "singledoc_rolls",
    "episodes": [1],
    "campaign": "campaign2",
}
RULER: dict[str, Any] = {
    "index": 0,
    "input": "Some special magic numbers are hidden within the following text.\nlong text\nOne of the special magic "
    "numbers for calm-bay is: 5437923.\n"
    "What are all the special magic numbers for calm-bay mentioned in the provided text?",
    "outputs": ["5437923", "12"],
    "length": 51,
    "answer_prefix": " The special magic numbers for calm-bay mentioned in the provided text are",
}
ON_HUB: dict[str, Any] = {
    "context": "Document 1: ... Paris ...",
    "question": "Where is it?\n",
    "answer_prefix": "Answer:",
    "answer": ["Paris", "paris city"],
    "task": "qa_1",
    "max_new_tokens": 32,
}


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, rows)) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def scored(task: Any, answer: Any) -> float:
    return task.score(Attempt(answer, answered=True)).value


def test_oolong_synth(tmp_path: Path) -> None:
    other = {**SYNTH, "id": 18, "context_len": 2048, "answer": "[12]", "answer_type": "ANSWER_TYPE.NUMERIC"}
    place = write(tmp_path / "validation.jsonl", SYNTH, other)
    suite = get_suite(f"oolong:{place}")
    assert [t.id for t in suite] == ["oolong-counting-17", "oolong-counting-18"]
    first, second = suite
    assert first.question == SYNTH["question"]
    assert first.material() == SYNTH["context_window_text"]  # never the one with labels
    assert isinstance(first.context, Deferred)
    assert first.facts["context_len"] == 1024
    assert first.score(Attempt("Label: **spam**")).resolved
    assert not first.score(Attempt(None)).resolved
    assert scored(second, 14) == 0.75**2
    assert not second.score(Attempt(14)).resolved
    assert [t.id for t in get_suite(f"oolong:{place}", where={"context_len": 2048})] == [second.id]
    assert len(get_suite(f"oolong:{place}", limit=1)) == 1
    assert [t.id for t in get_suite(f"oolong:{place}/test")] == [second.id]


def test_a_digest_is_of_the_text_and_the_text_is_read_again(tmp_path: Path) -> None:
    place = write(tmp_path / "a.jsonl", SYNTH)
    (task,) = get_suite(f"oolong:{place}")
    before = task_digest(task)
    write(tmp_path / "a.jsonl", {**SYNTH, "context_window_text": "another text"})
    (changed,) = get_suite(f"oolong:{place}")
    assert task_digest(changed) != before
    assert changed.material() == "another text"


def test_oolong_real(tmp_path: Path) -> None:
    (task,) = get_suite(f"oolong:{write(tmp_path / 'dnd.jsonl.gz', REAL)}")
    assert task.id == "oolong-singledoc_rolls-a1"
    assert task.context == "Episode 1 ..."
    assert task.score(Attempt(r"It is \boxed{84}")).resolved


def test_ruler_as_its_scripts_write_it(tmp_path: Path) -> None:
    write(tmp_path / "niah_multivalue" / "validation.jsonl", RULER)
    write(tmp_path / "qa_1" / "validation.jsonl", {**RULER, "outputs": ["Paris", "Lyon"]})
    values, asked = get_suite(f"ruler:{tmp_path}")
    assert (values.id, asked.id) == ("ruler-niah_multivalue-0", "ruler-qa_1-0")
    assert values.question == "What are all the special magic numbers for calm-bay mentioned in the provided text?"
    assert values.material() == RULER["input"]
    assert scored(values, "They are 5437923 and 13") == 0.5
    assert values.score(Attempt([5437923, 12])).resolved
    assert asked.score(Attempt("in PARIS")).resolved


def test_ruler_as_on_the_hub(tmp_path: Path) -> None:
    suite = get_suite(f"ruler:{write(tmp_path / '4096.jsonl', ON_HUB, {**ON_HUB, 'task': 'vt', 'index': 7})}")
    assert [t.id for t in suite] == ["ruler-qa_1-1", "ruler-vt-7"]
    assert suite.tasks[0].score(Attempt("Paris")).resolved
    assert scored(suite.tasks[1], "Paris") == 0.5


def test_the_hub_is_asked_for_what_is_wanted_and_no_more() -> None:
    asked: list[Any] = []

    def rows(*place: str, **options: Any) -> Iterator[dict[str, Any]]:
        asked.append((place, options))
        for number in range(3):
            asked.append(number)
            yield {**SYNTH, "id": number}

    suite = get_suite("oolong:hf://oolongbench/oolong-synth", limit=2, open_dataset=rows, revision="abc")
    assert asked[0] == (("oolongbench/oolong-synth",), {"split": "validation", "streaming": True, "revision": "abc"})
    assert len(suite) == 2
    first, second = suite
    assert first.context is second.context  # one text, kept once
    get_suite(
        "ruler:hf://simonjegou/ruler/4096", limit=1, open_dataset=lambda *a, **o: asked.append((a, o)) or [ON_HUB]
    )
    assert asked[-1] == (("simonjegou/ruler", "4096"), {"split": "test", "streaming": True})


@pytest.mark.skipif(importlib.util.find_spec("datasets") is not None, reason="datasets is installed")
def test_without_datasets_the_extra_is_named() -> None:
    with pytest.raises(ImportError, match=r'pip install -e "\.\[hub\]"'):
        get_suite("oolong:hf://oolongbench/oolong-synth")


def test_parquet(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        (tmp_path / "x.parquet").write_bytes(b"PAR1")
        with pytest.raises(ImportError, match=r'pip install -e "\.\[hub\]"'):
            get_suite(f"oolong:{tmp_path}")
        return
    import pyarrow  # type: ignore
    from pyarrow import parquet  # type: ignore

    parquet.write_table(pyarrow.Table.from_pylist([SYNTH]), tmp_path / "x.parquet")
    (task,) = get_suite(f"oolong:{tmp_path}")
    assert task.context == SYNTH["context_window_text"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{**SYNTH, "question": None}], "a.jsonl:1: column 'question' is missing"),
        ([SYNTH, SYNTH], "a.jsonl:2: the id 'oolong-counting-17' was used before"),
        ([{"text": "x"}], "a.jsonl:1: these are no columns of oolong: text"),
        ([{**SYNTH, "answer": "spam"}], "a.jsonl:1: column 'answer' is no Python list"),
        ([], "there is no row in it"),
    ],
)
def test_faults(rows: list[dict[str, Any]], says: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteFileError, match=says):
        get_suite(f"oolong:{write(tmp_path / 'a.jsonl', *rows)}")


def test_more_faults(tmp_path: Path) -> None:
    place = write(tmp_path / "a.jsonl", SYNTH)
    with pytest.raises(SuiteFileError, match="there is no column 'context_length'; there are id"):
        get_suite(f"oolong:{place}", where={"context_length": 1})
    with pytest.raises(SuiteFileError, match="there is no row with"):
        get_suite(f"oolong:{place}", where={"context_len": 1})
    with pytest.raises(SuiteFileError, match="there is no file"):
        get_suite("ruler:/no/such/file.jsonl")
    with pytest.raises(ValueError, match="split is for places on the hub"):
        get_suite(f"oolong:{place}", split="test")
    with pytest.raises(ValueError, match="names no set; write hf://OWNER/NAME"):
        get_suite("oolong:hf://oolongbench")
    (tmp_path / "a.jsonl").write_text("{no json\n")
    with pytest.raises(SuiteFileError, match=r"a.jsonl:1: this is not JSON"):
        get_suite(f"oolong:{place}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteFileError, match=r"no file that ends in .jsonl"):
        get_suite(f"ruler:{tmp_path / 'empty'}")


@pytest.mark.parametrize(
    ("answer", "kind", "given", "value"),
    [
        ("['spam']", "LABEL", "Label: Spam", 1),
        ("['spam']", "LABEL", ["spam"], 1),
        ("['spam']", "LABEL", "ham", 0),
        ("[7]", "NUMERIC", "Answer: 7", 1),
        ("[7]", "NUMERIC", 8, 0.75),
        ("[7]", "NUMERIC", "seven", 0),
        ("['more common than']", "COMPARISON", "Answer: spam is more common than ham", 1),
        ("['more common than']", "COMPARISON", "less common than", 0),
        ("['less common than']", "COMPARISON", "Answer: less common than", 1),
        ("[datetime.date(2023, 5, 1)]", "DATE", "Date: 2023-05-01", 1),
        ("[datetime.date(2023, 5, 1)]", "DATE", "May 2, 2023", 0),
        ("[41]", "USER", "User: 41", 1),
        ("['May 2023']", "MONTH_YEAR", "Answer: May 2023", 1),
    ],
)
def test_oolong_scores(answer: str, kind: str, given: Any, value: float) -> None:
    assert oolong(answer, f"ANSWER_TYPE.{kind}")(given) == value


@pytest.mark.parametrize(
    ("gold", "given", "value"),
    [
        ("84", r"\boxed{84}", 1),
        ("84", 82, 0.75**2),
        ("84", "many", 0),
        ("Fireball", "fireball", 1),
        ("Fireball", "Shield", 0),
        ("Shield, Mage Hand", r"\boxed{Mage Hand, Light}", 0.5),
        ("Shield, Mage Hand", ["Mage Hand", "Shield"], 1),
    ],
)
def test_oolong_real_scores(gold: str, given: Any, value: float) -> None:
    assert oolong(gold, "")(given) == value


def test_ruler_scores_and_questions() -> None:
    assert ruler(["Blue", "green"], part=False)("blue sky") == 0.5
    assert ruler(["Blue", "green"], part=True)("blue sky") == 1
    assert ruler([], part=False)("x") == 0
    assert ruler_question("Text.\n\nQuestion: Who? Answer:") == "Question: Who?"
    assert ruler_question("Text.\nQuestion: Who?\nAnswer: According to") == "Question: Who?"


@pytest.mark.parametrize(
    "answer", [10**5000, [10**5000], float("nan"), b"\xff"], ids=["digits", "list", "nan", "bytes"]
)
@pytest.mark.parametrize("kind", ["LABEL", "NUMERIC", "DATE"])
def test_no_answer_is_more_than_a_rule_can_take(tmp_path: Path, answer: Any, kind: str) -> None:
    truth = {"LABEL": "['spam']", "NUMERIC": "[7]", "DATE": "[datetime.date(2023, 2, 1)]"}[kind]
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**SYNTH, "answer": truth, "answer_type": f"ANSWER_TYPE.{kind}"}) + "\n")
    (task,) = get_suite(f"oolong:{file}").tasks
    assert task.judge(Attempt(answer, None, True)).resolved is False
