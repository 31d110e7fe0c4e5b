"""Data sets in the forms that `datasets` reads, as tasks; a local folder stands for the hub."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.tasks import Attempt, Match, Suite, SuiteFileError, dataset_suite
from tests.lazy import needs

pytestmark = needs("datasets", extra="hub")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "sums").mkdir()
    rows = "q,a,text,key\n1 + 1?,so #### 2,one,x\n1 + 2?,so #### 3,two,y\n1 + 3?,so #### 4,three,y\n"
    (tmp_path / "sums" / "test.csv").write_text(rows)
    return str(tmp_path / "sums")


def last(row: Any) -> int:
    return int(row["a"].partition("#### ")[2])


def read(folder: str, **options: Any) -> Suite:
    return dataset_suite(folder, **{"prompt": "q", "answer": last, "cache_dir": f"{folder}.cache", **options})


def test_rows_become_tasks(folder: str) -> None:
    suite = read(folder, context="text", scorer=partial(Match, how="number"), limit=2)
    assert (suite.name, [t.id for t in suite]) == ("sums/test", ["0", "1"])
    first, second = suite
    assert (first.question, first.expected, first.context) == ("1 + 1?", 2, "one")
    assert first.judge(Attempt("It is 2.")).resolved
    assert not second.judge(Attempt("2")).resolved


def test_what_is_not_there_is_said(folder: str) -> None:
    for options, says in (
        ({"prompt": "question"}, r"sums:test:1: no column 'question'; there are q, a, text, key"),
        ({"id": "key"}, r"sums:test:3: id 'y' was used before"),
        ({"split": "train"}, r"sums: .*train"),
    ):
        with pytest.raises(SuiteFileError, match=says):
            read(folder, **options)
