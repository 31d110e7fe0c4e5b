"""The report of a study: what is on it, what it links to, and that nothing of a study can act on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from made_study import HOSTILE, QUESTION, Says, crossed_study, judge, made_study
from parsed_page import Parsed, sound

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.cli.main import main
from rlm_loop.models import ModelError
from rlm_loop.report import arm_table, study_page, suite_table, write_study_page, write_trace_pages
from rlm_loop.study import Results, Study, StudyError, compare, export, load_study


def links(page: str) -> list[str]:
    return [unquote(str(a["href"])) for a in Parsed(page).all("a") if not str(a["href"]).startswith("#")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def found(folder: Path) -> Results:
    return load_study(folder)


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return study_page(load_study(folder))


def cut(folder: Path, packed: Path) -> Path:
    """A packed study whose archive of traces is cut off."""
    export(folder, packed)
    (packed / "traces.tar.xz").write_bytes((packed / "traces.tar.xz").read_bytes()[:700])
    return packed


def test_what_is_on_the_page(found: Results, page: str) -> None:
    text = sound(page).text
    said = [QUESTION, "small & <i>odd</i>", "in 1 of 12 episodes (1 ModelError).", "Tasks resolved, in words"]
    said += ["arms differ in", *compare(found, "hasty").sentences()]
    assert [part for part in said if part not in text] == []
    heads = re.findall(r'<h2 id="([a-z]+)" tabindex="-1">', page)
    assert heads == ["answer", "about", "findings", "episodes", "figures", "arms"]
    assert re.findall(r'<li><a href="#([a-z]+)">', page) == heads
    assert study_page(found) == page, "the same results give the same page"


def test_a_page_of_a_hundred_episodes_is_small_and_names_the_levels_of_its_intervals() -> None:
    """Nine arms on twelve tasks of three suites; no arm has an interval of its own beside the paired ones."""
    page = study_page(load_study(Path(__file__).parents[2] / "experiments" / "ablations" / "results"))
    assert len(page) < 300_000
    text = sound(page).text
    said = "code[max_history=4] against code (95 % intervals): −8.3 (−35.4 to +18.1) points"
    assert (said in text, "In brackets: 95 % intervals." in text) == (True, True)
    assert "interval 65 to 99" not in text  # Wilson's


@pytest.mark.slow
def test_each_trace_has_a_page_that_the_report_links_packed_too(folder: Path, found: Results, tmp_path: Path) -> None:
    out = write_study_page(folder, tmp_path / "deep" / "report.html")
    pages = sorted(page for page in out.parent.rglob("*.html") if page != out)
    linked = sorted(out.parent / link for link in links(out.read_text(encoding="utf-8")))
    assert (linked, len(pages)) == (pages, len(found))  # the crashed one too: its trace says what happened until then
    assert "Is it easy-0?" in pages[0].read_text(encoding="utf-8")
    export(folder, tmp_path / "packed")
    again = write_study_page(tmp_path / "packed", tmp_path / "two" / "report.html").parent
    files = {p.relative_to(again): p.read_bytes() for p in again.rglob("*.html")}
    assert files == {p.relative_to(out.parent): p.read_bytes() for p in (out, *pages)}


def test_a_trace_that_is_gone_empty_or_outside_has_no_page(folder: Path, found: Results, tmp_path: Path) -> None:
    here = tmp_path / "study"
    here.mkdir()
    (here / "traces").symlink_to(folder / "traces")
    (here / "empty.jsonl").write_text("")
    (tmp_path / "secret.jsonl").write_text('{"event": "run_start", "question": "secret"}\n')
    named = ("traces/gone.jsonl", "../secret.jsonl", "/etc/passwd", "empty.jsonl")
    rows = [{**row, "trace": trace} for row, trace in zip(found.rows, named)]
    whole = found.rows[4]
    made = write_trace_pages(Results([*rows, whole], found.lock, str(here)), tmp_path / "out" / "pages")
    assert list(made) == [whole["trace"]]
    assert len([p for p in tmp_path.rglob("*.html") if "study" not in p.parts]) == 1
    assert links(study_page(Results(rows[:3], found.lock, str(here)), links=made)) == []


@pytest.mark.parametrize(
    ("question", "title", "text"),
    [("Is it?", "Is it?", ""), ("Is it?\n\nMore.", "Is it?", "More."), ("", "a name", "The study states no question")],
)
def test_where_the_question_comes_from(found: Results, question: str, title: str, text: str) -> None:
    page = study_page(Results([], {**found.lock, "name": "a name", "question": question}))
    said = f"<h1>{title}</h1>" in page, text in sound(page).text, "Nothing has been run yet." in page
    assert said == (True, True, True)
    hostile = study_page(replace(found, lock={**found.lock, "question": HOSTILE + question}))
    assert HOSTILE in sound(hostile).text


@pytest.mark.slow
def test_factors_and_traces_have_figures_of_their_own(tmp_path: Path) -> None:
    crossed = load_study(crossed_study(tmp_path / "crossed"))
    overhead = "Overhead by turn, mean of the runs that reach it, code"
    whole, alone = sound(study_page(crossed)).text, sound(study_page(replace(crossed, folder=""))).text
    assert ("Response to max_tokens, in words" in whole, overhead in whole) == (True, True)
    assert "Overhead by turn" not in alone  # it needs the traces
    text = sound(study_page(load_study(cut(tmp_path / "crossed", tmp_path / "packed")))).text
    assert ("Tasks resolved, in words" in text, "Overhead by turn" in text) == (True, False)


PARTS: dict[str, tuple[Callable[[Mapping[str, Any]], bool], str]] = {
    "one arm": (lambda r: r["arm"] == "hasty", "There is one arm, so there is nothing to compare it with."),
    "no task of all": (lambda r: (r["arm"] == "hasty") == (r["suite"] == "easy"), "No task was tried by every arm yet"),
    "not all": (lambda r: r["task"] != "hard-0" and (r["arm"], r["task"]) != ("hasty", "hard-5"), "32 of 36"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_study_that_is_not_whole_says_what_is_missing(found: Results, name: str) -> None:
    kept, says = PARTS[name]
    assert says in sound(study_page(replace(found, rows=[r for r in found.rows if kept(r)]))).text


def test_several_models(found: Results) -> None:
    rows = [*found.rows, *({**r, "model": "other", "model_name": "other"} for r in found.rows)]
    lock = {**found.lock, "models": ["local:scripted", "other"]}
    several = Results(rows, lock, found.folder)
    table, text = arm_table(several), sound(study_page(several)).text
    assert (table.columns[:2], {row[0] for row in table.rows}) == (["model", "arm"], {"local:scripted", "other"})
    assert "careful against hasty, on 12 tasks of 2 suites pooled by pairs with other: " in text
    assert "other · hard" in text


# -- an arm that crashes, on some tasks or on all: one denominator everywhere, and nothing is emptied by it

TASKS = 20


@pytest.fixture(scope="module", params=[TASKS // 2, pytest.param(TASKS, marks=pytest.mark.slow)])
def crashing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Results]:
    """Two arms that are right, and one whose model fails for good on the last tasks; how many, and the results."""
    folder, crashes = tmp_path_factory.mktemp("study"), request.param
    gone = {f"it {n}?": ModelError("the provider is gone") for n in range(TASKS - crashes, TASKS)}
    of = {"base": {}, "other": {}, "broken": gone}
    arms = {name: DirectAgent(Says("local:scripted", dict(said), n)) for n, (name, said) in enumerate(of.items(), 1)}
    study = Study("crashing", arms, Suite("sums", tuple(Task(f"t{n}", f"Is it {n}?", judge) for n in range(TASKS))))
    with suppress(StudyError):  # an arm that crashes alike in its first tasks stops the study once
        study.run(folder, False)
    study.run(folder, False)
    return crashes, load_study(folder)


def test_the_denominator_is_the_same_everywhere_and_no_other_arm_is_emptied(crashing: tuple[int, Results]) -> None:
    crashes, results = crashing
    right = TASKS - crashes
    assert (len(results.crashed), results.left_out) == (crashes, 0)
    counts = [(TASKS, TASKS, TASKS, TASKS)] * 2 + [(TASKS, right, TASKS, right)]
    assert [(s.n, s.resolved, s.judged, s.measured) for s in results.summary()] == counts
    for table in (arm_table(results), suite_table(results)):
        cells = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        assert [(row["n"], row["resolved"]) for row in cells] == [("20", "20"), ("20", "20"), ("20", str(right))]
        assert re.search(rf"ran to their end \(broken( in sums)? {right} of 20\)", " ".join(table.notes))
    rate = next(c for c in compare(results).contrasts if (c.arm, c.measure) == ("broken", "resolved"))
    assert (rate.pairs, rate.missing, rate.used, rate.value) == (TASKS, 0, TASKS, right / TASKS)
    text = Parsed(study_page(results)).text
    assert f"broken in {crashes} of {TASKS} episodes (" in text.replace("\n", "")
    assert f"broken20{right}" in text.replace("\n", "")

    said = ("nothing to compare", "other against base", "broken against base", "Tasks resolved, in words")
    assert [part in text for part in said] == [False, True, True, True]
    fault = {"error": "MemoryError: full", "error_class": "MemoryError"}
    faulty = replace(results, rows=[{**r, **fault} if r["error"] else r for r in results.rows])
    assert [s.judged for s in faulty.summary()] == [TASKS, TASKS, right], "a fault of the machine is in no rate"
    assert f"episodes ({crashes} MemoryError)" in Parsed(study_page(faulty)).text


def test_faults_are_one_line_and_say_what_to_do(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "r.html"
    for source, page, options, says in (
        (tmp_path / "none", out, {}, "holds no study"),
        (folder, tmp_path, {}, "name a file"),
        (folder, tmp_path / "file" / "r.html", {}, "choose another file"),
        (folder, out, {"baseline": "nobody"}, "there is no arm 'nobody'; there are hasty, careful"),
        (cut(folder, tmp_path / "packed"), out, {}, "export the study again"),
    ):
        with pytest.raises(StudyError, match=re.escape(says)) as caught:
            write_study_page(source, page, **options)
        assert "\n" not in str(caught.value)
    assert not out.exists()


def test_on_the_command_line(folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    report = ("study", "report", str(folder), "--html")
    assert main([*report, "out.html", "--baseline", "careful"]) == 0
    assert capsys.readouterr().out == "out.html\n"
    text = sound(Path("out.html").read_text(encoding="utf-8")).text
    assert ("hasty against careful" in text, "careful against hasty" in text) == (True, False)
    assert main([*report, "bare.html", "--no-traces"]) == 0
    assert links(Path("bare.html").read_text(encoding="utf-8")) == []
    assert {p.name for p in tmp_path.iterdir()} == {"out.html", "out_traces", "bare.html"}
    assert main([*report, "x.html", "--baseline", "nobody"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
