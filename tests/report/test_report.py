"""Tables in every form, and the figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_rows import made_results

from rlm_loop.report import Table, arm_table, resolve_against_tokens, save, suite_table
from rlm_loop.study import Results, StudyError

BOTH = Table("A <title>", ["name", "n"], [["x|y", "1"], ["<z>", "22"]], ["A note."])


def test_the_forms_of_a_table() -> None:
    assert BOTH.to_markdown() == (
        "**A <title>**\n\n| name | n |\n| --- | ---: |\n| x\\|y | 1 |\n| <z> | 22 |\n\nA note.\n"
    )
    assert BOTH.to_text() == "A <title>\nname   n\n----  --\nx|y    1\n<z>   22\nA note."
    html = BOTH._repr_html_()
    assert "&lt;z&gt;" in html
    assert "<z>" not in html
    assert "A note." in html


def test_the_table_of_the_arms_says_what_the_rows_say() -> None:
    results = made_results(4, seed=5, recorded=True)
    table = arm_table(results, baseline="lean")
    assert table.title == "Arms of made-up (recorded run)"
    row = dict(zip(table.columns, table.rows[0], strict=True))
    mine = [r for r in results.rows if r["arm"] == "code"]
    resolved = sum(r["resolved"] for r in mine)
    assert (row["arm"], row["n"], row["resolved"]) == ("code", "12", str(resolved))
    assert row["tokens in"] == f"{sum(r['input_tokens'] for r in mine) / 12:,.0f}"
    assert row["rate [95 % CI]"].startswith(f"{resolved / 12:.0%} [")
    assert table.rows[1][-1] == "baseline"
    assert any("2 CPUs, Linux x86_64; `rlm-loop study run made_up`" in n for n in table.notes)
    assert len(suite_table(results).rows) == 15
    assert sum(int(r[2]) for r in suite_table(results).rows) == len(results.rows)


def test_what_is_missing_is_said() -> None:
    whole = made_results(4)
    rows = [dict(r) for r in whole.rows]
    rows[3].update(error="ModelError: gone", resolved=False)
    for row in rows:
        row["cached_tokens"] = row["new_tokens"] = None
    table = arm_table(replace(whole, rows=rows[:-1]))
    assert "1 pair of task and seed is left out: not every arm was tried on them." in table.notes
    assert (
        table.notes[0] == "Crashed: react-native in 1 of 12 episodes (1 ModelError). `--retry-failed` tries them again."
    )
    assert {row[6] for row in table.rows} == {"-"}
    assert {row[1] for row in table.rows} == {"11"}


def test_several_models_get_a_column() -> None:
    one = made_results(2)
    results = replace(one, rows=[*one.rows, *({**r, "model": "other"} for r in one.rows)])
    table = arm_table(results)
    assert table.columns[:2] == ["model", "arm"]
    assert [row[0] for row in table.rows] == ["local"] * 5 + ["other"] * 5
    assert set(results.by_arm().index.names) == {"model", "arm"}


def test_nothing_to_draw_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="draw"):
        resolve_against_tokens(Results([]))
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="file"):
        save(resolve_against_tokens(made_results(1)), tmp_path / "file" / "figure")
