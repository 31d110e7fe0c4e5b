"""The report of a study: what is on it, what it links to, and that nothing of a study can act on it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from made_crossed import crossed_study
from made_rows import made_results
from made_study import HOSTILE, QUESTION, judge, made_study
from parsed_page import Parsed

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel
from rlm_loop.report import study_page, write_study_page, write_trace_pages
from rlm_loop.study import Results, Study, StudyError, compare, export, load_study

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def sound(page: str) -> Parsed:
    """Well formed, one script, links that lead to a place on the page or to a trace, pictures inside and described."""
    found = Parsed(page)
    assert found.wrong == []
    assert len(found.all("script")) == 1
    assert not {"iframe", "link", "object", "embed", "base"} & {tag for tag, _ in found.elements}
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")]
        assert tag == "img" or "src" not in attributes
    for picture in found.all("img"):
        assert str(picture["src"]).startswith("data:image/svg+xml;base64,")
        assert len(str(picture["alt"])) > 40
    ids = found.ids()
    assert len(ids) == len(set(ids))
    assert not [a for a in found.all("a") if str(a["href"]).startswith("#") and str(a["href"])[1:] not in ids]
    return found


def links(page: str) -> list[str]:
    return [unquote(str(a["href"])) for a in Parsed(page).all("a") if not str(a["href"]).startswith("#")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return study_page(folder)


@pytest.fixture(scope="module")
def parsed(page: str) -> Parsed:
    return sound(page)


@pytest.mark.parametrize(
    "said",
    [
        QUESTION,
        "small & <i>odd</i>",
        "careful against hasty",
        "in 1 of 12 episodes (1 ModelError).",
        "Tasks resolved, in words",
        "arms differ in",
    ],
)
def test_what_is_on_the_page(parsed: Parsed, said: str) -> None:
    assert said in parsed.text


def test_sections_are_listed_and_in_order(page: str) -> None:
    heads = re.findall(r'<h2 id="([a-z]+)" tabindex="-1">', page)
    below = ["findings", "episodes", "figures", "arms"]
    assert heads == ["answer", "about", *below]
    assert re.findall(r'<li><a href="#([a-z]+)">', page) == heads


def test_the_sentences_are_those_of_the_comparison(folder: Path, parsed: Parsed) -> None:
    said = compare(load_study(folder), "hasty").sentences()
    text = parsed.text
    assert [sentence for sentence in said if sentence not in text] == []


def test_another_baseline(folder: Path) -> None:
    text = sound(study_page(folder, baseline="careful")).text
    assert "hasty against careful" in text
    assert "careful against hasty" not in text


def test_the_same_results_give_the_same_page(folder: Path, page: str) -> None:
    assert study_page(load_study(folder)) == page


def test_the_policy_forbids_the_network_and_other_scripts(page: str) -> None:
    policy = str(next(m["content"] for m in Parsed(page).all("meta") if m.get("http-equiv")))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_what_was_planned_and_not_run_is_said(folder: Path) -> None:
    whole = load_study(folder)
    kept = [r for r in whole.rows if (r["arm"], r["task"]) != ("hasty", "hard-5") and r["task"] != "hard-0"]
    part = Results(kept, whole.lock, whole.folder, True)
    text = sound(study_page(part)).text
    assert "32 of 36" in text


# -- traces


def test_each_trace_has_a_page_that_the_report_links(folder: Path, tmp_path: Path) -> None:
    out = write_study_page(folder, tmp_path / "deep" / "report.html")
    pages = sorted(page for page in out.parent.rglob("*.html") if page != out)
    assert sorted(out.parent / link for link in links(out.read_text(encoding="utf-8"))) == pages
    # the crashed one too: its trace says what happened until then
    assert len(pages) == len(load_study(folder))
    assert "Is it easy-0?" in pages[0].read_text(encoding="utf-8")


@pytest.mark.slow
def test_packed_traces_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "packed")
    loose = write_study_page(folder, tmp_path / "one" / "r.html")
    packed = write_study_page(tmp_path / "packed", tmp_path / "two" / "r.html")
    files = {p.relative_to(loose.parent): p.read_bytes() for p in loose.parent.rglob("*.html")}
    assert files == {p.relative_to(packed.parent): p.read_bytes() for p in packed.parent.rglob("*.html")}


def test_without_traces_nothing_is_linked_or_written(folder: Path, tmp_path: Path) -> None:
    out = write_study_page(folder, tmp_path / "report.html", traces=False)
    assert links(out.read_text(encoding="utf-8")) == []
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_trace_that_is_gone_or_outside_has_no_page(folder: Path, tmp_path: Path) -> None:
    found = load_study(folder)
    rows = [dict(row) for row in found.rows[:4]]
    (tmp_path / "secret.jsonl").write_text('{"event": "run_start", "question": "secret"}\n')
    rows[0]["trace"], rows[1]["trace"], rows[2]["trace"] = "traces/gone.jsonl", "../secret.jsonl", "/etc/passwd"
    here = tmp_path / "study"
    here.mkdir()
    (here / "traces").symlink_to(folder / "traces")
    made = write_trace_pages(Results(rows, found.lock, str(here)), tmp_path / "out" / "pages")
    assert list(made) == [rows[3]["trace"]]
    assert len([p for p in tmp_path.rglob("*.html") if "study" not in p.parts]) == 1
    assert links(study_page(Results(rows[:3], found.lock, str(here)), traces=made)) == []


def test_a_trace_without_an_event_has_no_page(folder: Path, tmp_path: Path) -> None:
    found = load_study(folder)
    (tmp_path / "empty.jsonl").write_text("")
    row = {**found.rows[0], "trace": "empty.jsonl"}
    assert write_trace_pages(Results([row], found.lock, str(tmp_path)), tmp_path / "pages") == {}


# -- the question


@pytest.mark.parametrize(
    ("lock", "title", "text"),
    [({"question": "Is it?"}, "Is it?", ""), ({"question": "Is it?\n\nMore."}, "Is it?", "More."), ({}, "a name", "")],
)
def test_where_the_question_comes_from(lock: Mapping[str, Any], title: str, text: str) -> None:
    page = study_page(Results([], {**made_results(1).lock, "name": "a name", **lock}))
    assert f"<h1>{title}</h1>" in page
    assert text in sound(page).text


# -- figures that only some studies have numbers for


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return load_study(crossed_study(tmp_path_factory.mktemp("crossed")))


@pytest.mark.slow
def test_factors_and_traces_have_figures_of_their_own(crossed: Results, tmp_path: Path) -> None:
    text = sound(study_page(crossed)).text
    assert "Response to max_tokens, in words" in text
    assert "Overhead by turn, mean of the runs that reach it, code" in text
    assert "Overhead by turn" not in sound(study_page(replace(crossed, folder=""))).text  # no traces
    export(crossed.folder, tmp_path / "packed")
    cut = tmp_path / "packed" / "traces.tar.xz"
    cut.write_bytes(cut.read_bytes()[:700])
    text = sound(study_page(tmp_path / "packed")).text
    assert "Tasks resolved, in words" in text
    assert "cannot read" in text


# -- studies that are not whole


def lone(folder: Path, arms: Mapping[str, list[Any]], **options: Any) -> Path:
    tasks = tuple(Task(f"t{i}", f"{i}?", judge) for i in range(3))
    made = {name: DirectAgent(model=ScriptedModel(replies, name="m")) for name, replies in arms.items()}
    Study("lone", made, Suite("toy", tasks)).run(folder, False, **options)
    return folder


def test_one_arm(tmp_path: Path) -> None:
    text = sound(study_page(lone(tmp_path, {"only": ["yes"] * 3}))).text
    assert "There is one arm, so there is nothing to compare it with." in text
    assert "The study states no question" in text


def test_nothing_was_run(folder: Path) -> None:
    text = sound(study_page(Results([], load_study(folder).lock, str(folder)))).text
    assert "Nothing has been run yet." in text


def test_no_task_was_finished_by_every_arm(folder: Path) -> None:
    found = load_study(folder)
    rows = [r for r in found.rows if (r["arm"] == "hasty") == (r["suite"] == "easy")]
    text = sound(study_page(Results(rows, found.lock, str(folder)))).text
    assert "No task was tried by every arm yet" in text


def test_several_models(folder: Path) -> None:
    found = load_study(folder)
    rows = [*found.rows, *({**r, "model": "other", "model_name": "other"} for r in found.rows)]
    lock = {**found.lock, "models": ["local:scripted", "other"]}
    text = sound(study_page(Results(rows, lock, str(folder)))).text
    assert "careful against hasty, on 12 tasks of 2 suites pooled by pairs with other: " in text
    assert "other · hard" in text


def test_without_the_extra_the_page_says_so() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(("matplotlib", "scipy", "pandas", "numpy")))
from rlm_loop.report.study import study_page
page = study_page(sys.argv[1], traces=False)
print(page.count(".[studies]"), page.count(">Arms of"))
"""
    argv = [sys.executable, "-c", code, str(EXPERIMENTS / "token_overhead" / "results")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "0"]  # answer, tables, figures, differences


# -- faults


def test_faults_are_one_line_and_say_what_to_do(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "packed").mkdir()
    export(folder, tmp_path / "packed")
    cut = tmp_path / "packed" / "traces.tar.xz"
    cut.write_bytes(cut.read_bytes()[:700])
    for source, out, options, says in (
        (tmp_path / "none", tmp_path / "r.html", {}, "holds no study"),
        (folder, tmp_path, {}, "is a folder; name a file"),
        (folder, tmp_path / "file" / "r.html", {}, "choose another file"),
        (folder, tmp_path / "r.html", {"baseline": "nobody"}, "there is no arm 'nobody'; there are hasty, careful"),
        (tmp_path / "packed", tmp_path / "r.html", {}, "export the study again, or leave the traces out"),
    ):
        with pytest.raises(StudyError, match=re.escape(says)) as caught:
            write_study_page(source, out, **options)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "r.html").exists()


def test_on_the_command_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["study", "report", str(folder), "--html", "out.html", "--baseline", "careful"]) == 0
    out = capsys.readouterr().out
    assert out == "out.html\n"
    assert "hasty against careful" in Path("out.html").read_text(encoding="utf-8")
    assert Path("out_traces").is_dir()
    assert main(["study", "report", str(folder), "--html", "bare.html", "--no-traces"]) == 0
    assert not Path("bare_traces").exists()
    assert main(["study", "report", str(folder), "--html", "x.html", "--baseline", "nobody"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_question_in_the_lock_is_text(tmp_path: Path) -> None:
    folder = made_study(tmp_path, question=HOSTILE)
    assert HOSTILE in sound(study_page(folder, traces=False)).text
    assert json.loads((folder / "study.json").read_text())["question"] == HOSTILE
