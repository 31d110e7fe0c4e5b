"""Rows as Parquet: what is read back is what was written, whichever of the files is complete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_arms import Arm, suite, unreachable

from rlm_loop.study import Study, StudyError, compact, export, load_study
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.parquet import read_parquet, write_parquet
from rlm_loop.study.store.reading import every_row, read_rows
from rlm_loop.tasks.base import Task

pytest.importorskip("pyarrow")
EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def crash(task: Task) -> None:
    if task.id == "s-2":
        raise unreachable()


def study(tasks: int = 3, **more: Any) -> Study:
    return Study("mine", {"a": Arm("a", 1, **more), "b": Arm("b", 2)}, suite("s", tasks), seeds=(0, 1))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab0é\n\ud800\U0001f600")
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text("ab\ud800", max_size=2), SCALARS, max_size=3)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES), min_size=1, max_size=6))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_values_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    rows = [{"arm": "x", **row} for row in rows]
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    write_parquet(path, rows, b"")
    found = read_parquet(path)
    assert found == rows
    assert repr([sorted(r.items()) for r in found]) == repr([sorted(r.items()) for r in rows])  # 1 is not 1.0 or True


@pytest.mark.parametrize("name", ["lean_vs_react", "token_overhead", "recursion_depth", "bug_fixing"])
def test_recorded_results_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    rows = read_rows(EXPERIMENTS / name / "results")
    write_parquet(tmp_path / "rows.parquet", rows, b"")
    assert read_parquet(tmp_path / "rows.parquet") == rows


def test_columns_are_those_that_other_tools_expect(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    study(before=crash).run(tmp_path, False)
    types = {f.name: str(f.type) for f in parquet.read_schema(compact(tmp_path))}
    assert types["input_tokens"] == "int64"
    assert types["seconds"] == "double"
    assert types["resolved"] == "bool"
    assert types["by_cause"].startswith("map<string, int64")
    assert types["cumulative_prompt_tokens"].startswith("list<")


def test_compacted_results_read_alike_and_grow(tmp_path: Path) -> None:
    before = study(2, before=crash).run(tmp_path, False)
    path = compact(tmp_path)
    assert path.name == "results.parquet"
    assert list(load_study(tmp_path).rows) == list(before.rows)
    (tmp_path / "results.jsonl").rename(tmp_path / "aside")
    assert list(load_study(tmp_path).rows) == list(before.rows)  # Parquet alone is complete
    (tmp_path / "aside").rename(tmp_path / "results.jsonl")
    after = study(3, before=crash).run(tmp_path, False)
    assert len(after) == 12  # the lines have more than Parquet now
    assert list(load_study(tmp_path).rows) == list(after.rows)


def test_without_its_lines_a_study_goes_on(tmp_path: Path) -> None:
    study(2, before=crash).run(tmp_path, False)
    compact(tmp_path, keep=False)
    assert not (tmp_path / "results.jsonl").exists()
    log: list[tuple[str, str]] = []
    found = study(3, log=log).run(tmp_path, False, retry_failed=True)
    assert len(found) == 12
    assert not found.crashed
    assert [t for _, t in log] == ["s-2", "s-2", "s-3", "s-3"]
    assert len(list(every_row(tmp_path))) == 14  # two failed attempts among them
    for keep in (True, True, False, False):
        compact(tmp_path, keep=keep)
        assert list(load_study(tmp_path).rows) == list(found.rows)
        assert len(list(every_row(tmp_path))) == 14


def test_an_exported_study_goes_on(tmp_path: Path) -> None:
    study(2).run(tmp_path / "run", False)
    export(tmp_path / "run", tmp_path / "packed")
    log: list[tuple[str, str]] = []
    assert len(study(3, log=log).run(tmp_path / "packed", False)) == 12
    assert {t for _, t in log} == {"s-3"}
    assert len(load_study(tmp_path / "packed")) == 12


def test_a_damaged_file_is_no_loss_while_the_lines_are_there(tmp_path: Path) -> None:
    found = study().run(tmp_path, False)
    compact(tmp_path).write_bytes(b"PAR1 torn")
    assert list(load_study(tmp_path).rows) == list(found.rows)
    compact(tmp_path, keep=False).write_bytes(b"PAR1 torn")
    with pytest.raises(StudyError, match=r"cannot read .*results\.parquet.*restore it from a copy") as refused:
        load_study(tmp_path)
    assert "\n" not in str(refused.value)


def test_without_pyarrow_the_lines_are_read_and_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = study().run(tmp_path, False)
    compact(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert list(load_study(tmp_path).rows) == list(found.rows)
    with pytest.raises(StudyError, match=r'pip install -e "\.\[parquet\]"'):
        compact(tmp_path)
    (tmp_path / "results.jsonl").unlink()
    with pytest.raises(StudyError, match=r'pip install -e "\.\[parquet\]"'):
        load_study(tmp_path)


def test_a_running_study_keeps_its_lines(tmp_path: Path) -> None:
    study().run(tmp_path, False)
    with Store(tmp_path, "mine"):
        compact(tmp_path)
        with pytest.raises(StudyError, match="another run is writing"):
            compact(tmp_path, keep=False)
    assert (tmp_path / "results.jsonl").exists()
    with pytest.raises(StudyError, match="no such folder"):
        compact(tmp_path / "nothing")
