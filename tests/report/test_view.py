"""The pages over a folder of runs: what they show of which files, how they are asked for, and whom they answer."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from made_study import HOSTILE, made_study

from rlm_loop import DirectAgent, Suite, Task, ToolLoopAgent
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel
from rlm_loop.report import viewing, write_trace_pages
from rlm_loop.study import Study, export, load_study


def run(path: Path, *, answer: int = 42, question: str = "How many?") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    model = ScriptedModel([f"```python\n{cell}\n```" for cell in ("print(6 * 7)", f"final_answer = {answer}")])
    ToolLoopAgent(model=model).run(question, trace=path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, two runs of no study, and files that are neither."""
    root = tmp_path_factory.mktemp("all")
    made_study(root / "a study")
    run(root / "runs" / "one.jsonl")
    run(root / "runs" / "two.jsonl", answer=41)
    (root / "notes.jsonl").write_text('{"no": "trace"}\n')
    (root / ".hidden").mkdir()
    shutil.copy(root / "runs" / "one.jsonl", root / ".hidden" / "one.jsonl")
    return root


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Path:
    """A copy of the study, to be changed."""
    return Path(shutil.copytree(folder / "a study", tmp_path / "in" / "study"))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with viewing(folder) as url:
        yield url


def get(url: str, path: str, *, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request(method, f"/{path}", headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def rows(url: str) -> list[dict[str, Any]]:
    data = json.loads(get(url, "rows.json")[2])
    return [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]


def page_of(url: str, **wanted: Any) -> str:
    """The page of the episode whose row has these values."""
    row = next(row for row in rows(url) if all(row[name] == value for name, value in wanted.items()))
    status, _, page = get(url, f"e/{row['id']}.html")
    assert status == 200
    return page


def test_the_table_has_studies_and_runs_and_an_episode_says_its_score(server: str) -> None:
    found = rows(server)
    assert (len(found), len({row["id"] for row in found})) == (38, 38)
    assert sum(row["study"] == "a study" for row in found) == 36
    loose = [row for row in found if row["study"] == "runs"]
    said = [tuple(row[name] for name in ("task", "state", "stop", "steps", "answer")) for row in loose]
    assert said == [("question", "no score", "answered", 2, answer) for answer in ("42", "41")]
    assert all(row["input"] > 0 and row["output"] > 0 for row in loose)
    states = {"resolved", "not resolved", "not judged", "crashed", "no score"}
    assert {row["state"] for row in found} == states

    page = page_of(server, arm="careful", task="hard-2")
    assert ('class="mark bad">not resolved</span>' in page, HOSTILE in page) == (True, False)
    for path in ("rows.json", f"e/{found[0]['id']}.html"):  # what has not changed is not sent again
        _, headers, _ = get(server, path)
        assert get(server, path, If_None_Match=headers["ETag"])[::2] == (304, "")


def test_a_running_study_shows_what_has_no_row_yet(study: Path) -> None:
    lines = (study / "results.jsonl").read_text().splitlines(True)
    with viewing(study.parent) as url:
        whole = {row["id"]: row for row in rows(url)}
        (study / "results.jsonl").write_text("".join(lines[:-1]))
        part = {row["id"]: row for row in rows(url)}
    assert set(part) == set(whole)  # a link to a running episode stays good
    (without,) = (row for row in part.values() if row["state"] == "no score")
    for name in ("study", "model", "task"):
        assert without[name] == whole[without["id"]][name]


@pytest.mark.parametrize("traces", [True, False])
def test_a_packed_study_opens_without_its_traces_as_rows(study: Path, tmp_path: Path, traces: bool) -> None:
    export(study, tmp_path / "packed")
    if not traces:
        (tmp_path / "packed" / "traces.tar.xz").unlink()
    with viewing(tmp_path / "packed") as url:
        page = page_of(url, arm="hasty", task="hard-2", study="")
    assert 'class="mark bad">not resolved</span>' in page
    assert ["only its row" in page, "Row of the study" in page] == [not traces] * 2


def test_the_expected_answer_is_shown_and_no_answer_is_none(tmp_path: Path) -> None:
    none = ToolLoopAgent(model=ScriptedModel(["```python\nx = 1\n```"]), max_steps=1)
    for name, agent in (("direct", DirectAgent(model=ScriptedModel(["4"]))), ("code", none)):
        suite = Suite("sums", [Task("one", "What is 2 + 3?", 5)])
        Study("sums", {name: agent}, suite).run(tmp_path / name, False)
    with viewing(tmp_path) as url:
        said = {row["arm"]: (row["answer"], row["expected"], row["stop"]) for row in rows(url)}
        page = page_of(url, arm="direct")
    assert said == {"direct": ("'4'", "5", "answered"), "code": ("", "5", "steps")}
    (static,) = write_trace_pages(load_study(tmp_path / "direct"), tmp_path / "pages").values()
    for text in (page, (tmp_path / static).read_text("utf-8")):
        assert "Expected: <code>5</code>" in text


def test_one_trace_file_is_enough_and_a_session_of_the_meter_is_a_run(tmp_path: Path) -> None:
    with viewing(run(tmp_path / "one.jsonl")) as url:
        assert (len(rows(url)), "print(" in page_of(url)) == (1, True)
    with metered_endpoint(ScriptedModel(["Hello."]), out=tmp_path / "metered") as address:
        body = {"model": "any", "messages": [{"role": "user", "content": "A question?"}]}
        assert httpx.post(f"{address}/chat/completions", json=body, trust_env=False).status_code == 200
    with viewing(tmp_path / "metered") as url:
        (row,) = rows(url)
    said = [row[name] for name in ("arm", "task", "stop", "answer")]
    assert said == ["metered", "session default", "answered", "Hello."]


def test_what_is_damaged_is_said_and_a_row_cannot_name_a_file_outside(study: Path) -> None:
    run(study.parents[1] / "secret.jsonl", question="the secret")
    lines = (study / "results.jsonl").read_text().splitlines()
    row = {**json.loads(lines[-1]), "trace": "../../secret.jsonl"}
    (study / "results.jsonl").write_text("\n".join([*lines[:-1], json.dumps(row)]) + "\n")
    with viewing(study.parent) as url:
        pages = [get(url, "")[2], *(get(url, f"e/{here['id']}.html")[2] for here in rows(url))]
        assert not any("the secret" in page for page in pages)
    with (study / "results.jsonl").open("a") as file:
        file.write('{"torn\n{}\n')
    with viewing(study.parent) as url:
        assert any("results.jsonl" in note for note in json.loads(get(url, "rows.json")[2])["notes"])
        assert rows(url)  # the traces are still shown


def test_it_only_reads_and_another_name_is_refused(server: str) -> None:
    for host in ("example.org", "example.org:80", "127.0.0.1", "127.0.0.1:1", "localhost.example.org"):
        for path in ("", "rows.json"):
            status, _, text = get(server, path, Host=host)
            assert (status, "episodes" in text) == (403, False), host
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        assert get(server, "", method=method)[0] == 501
    for path in ("e/../../etc/passwd", "e/nobody.html", "side.html?a=x&b=y", "x"):
        assert get(server, path)[0] == 404, path
    status, headers, _ = get(server, "")
    said = headers["Cross-Origin-Resource-Policy"], headers["X-Content-Type-Options"]
    assert (status, said) == (200, ("same-origin", "nosniff"))
