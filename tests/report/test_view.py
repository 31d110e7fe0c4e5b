"""The pages over a folder of runs: what they show of which files, how they are asked for, and whom they answer."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from made_study import HOSTILE, made_study

from rlm_loop import DirectAgent, Suite, Task, ToolLoopAgent
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel
from rlm_loop.report import viewing, write_trace_pages
from rlm_loop.study import Study, export, load_study

CELL = "```python\nprint(6 * 7)\n```"


def run(path: Path, *replies: str, question: str = "How many?") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ToolLoopAgent(model=ScriptedModel(list(replies))).run(question, trace=path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, two runs of no study, and files that are neither."""
    root = tmp_path_factory.mktemp("all")
    made_study(root / "a study")
    run(root / "runs" / "one.jsonl", CELL, "```python\nfinal_answer = 42\n```")
    run(root / "runs" / "two.jsonl", CELL, "```python\nfinal_answer = 41\n```")
    (root / "notes.jsonl").write_text('{"no": "trace"}\n')
    (root / ".hidden").mkdir()
    shutil.copy(root / "runs" / "one.jsonl", root / ".hidden" / "one.jsonl")
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with viewing(folder) as url:
        yield url


def get(url: str, path: str, *, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request(method, f"/{path}", headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def rows(url: str) -> list[dict[str, Any]]:
    data = json.loads(get(url, "rows.json")[2])
    return [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]


def one(url: str, **wanted: Any) -> dict[str, Any]:
    return next(row for row in rows(url) if all(row[name] == value for name, value in wanted.items()))


def test_the_table_has_studies_and_runs(server: str) -> None:
    found = rows(server)
    assert sum(row["study"] == "a study" for row in found) == 36
    loose = [row for row in found if row["study"] == "runs"]
    assert [(row["task"], row["state"], row["stop"], row["steps"], row["answer"]) for row in loose] == [
        ("question", "no score", "answered", 2, "42"),
        ("question", "no score", "answered", 2, "41"),
    ]
    assert all(row["input"] > 0 and row["output"] > 0 for row in loose)
    assert len(found) == 38
    assert len({row["id"] for row in found}) == 38
    states = {row["state"] for row in found}
    assert states == {"resolved", "not resolved", "not judged", "crashed", "no score"}
    assert get(server, "")[0] == 200


def test_an_episode_says_its_score(server: str) -> None:
    here = one(server, arm="careful", task="hard-2")
    status, _, page = get(server, f"e/{here['id']}.html")
    assert status == 200
    assert 'class="mark bad">not resolved</span>' in page
    assert HOSTILE not in page


def test_a_run_of_no_study_has_its_page(server: str) -> None:
    here = one(server, answer="42")
    assert "print(" in get(server, f"e/{here['id']}.html")[2]


def test_what_has_not_changed_is_not_sent_again(server: str) -> None:
    for path in ("rows.json", f"e/{one(server, answer='42')['id']}.html"):
        _, headers, _ = get(server, path)
        assert get(server, path, If_None_Match=headers["ETag"])[::2] == (304, "")


def test_a_run_is_followed(tmp_path: Path) -> None:
    lines = run(tmp_path / "whole.jsonl", CELL, "```python\nfinal_answer = 42\n```").read_bytes().splitlines(True)
    (tmp_path / "whole.jsonl").unlink()
    seen: list[tuple[Any, ...]] = []
    with viewing(tmp_path) as url:
        assert rows(url) == []
        for written in (len(lines) - 1, len(lines)):
            (tmp_path / "live.jsonl").write_bytes(b"".join(lines[:written]))
            (row,) = rows(url)
            tag = get(url, f"e/{row['id']}.html")[1]["ETag"]
            seen.append((row["id"], tag, row["state"], row["stop"], row["steps"]))
    assert seen[0][2:] == ("running", "running", 2)
    assert seen[1][2:] == ("no score", "answered", 2)
    assert (seen[0][0] == seen[1][0], seen[0][1] == seen[1][1]) == (True, False)


def test_a_running_study_shows_what_has_no_row_yet(tmp_path: Path) -> None:
    study = made_study(tmp_path / "study")
    lines = (study / "results.jsonl").read_text().splitlines(True)
    with viewing(tmp_path) as url:
        whole = {row["id"]: row for row in rows(url)}
        (study / "results.jsonl").write_text("".join(lines[:-1]))
        part = {row["id"]: row for row in rows(url)}
    assert set(part) == set(whole)  # a link to a running episode stays good
    (without,) = (row for row in part.values() if row["state"] == "no score")
    for name in ("study", "arm", "model", "suite", "task", "seed"):
        assert without[name] == whole[without["id"]][name]


def test_a_packed_study_opens(tmp_path: Path) -> None:
    study = made_study(tmp_path / "study")
    export(study, tmp_path / "packed")
    with viewing(tmp_path / "packed") as url:
        here = one(url, arm="hasty", task="hard-2")
        assert here["study"] == ""
        assert 'class="mark bad">not resolved</span>' in get(url, f"e/{here['id']}.html")[2]


def test_a_run_without_an_answer_has_none_in_the_table(tmp_path: Path) -> None:
    agents = {"code": ToolLoopAgent(model=ScriptedModel(["```python\nx = 1\n```"]), max_steps=1)}
    Study("sums", agents, Suite("sums", [Task("one", "What is 2 + 3?", 5)])).run(tmp_path, False)
    with viewing(tmp_path) as url:
        (row,) = rows(url)
    assert (row["answer"], row["expected"], row["stop"]) == ("", "5", "steps")


def test_the_expected_answer_is_shown(tmp_path: Path) -> None:
    agents = {"direct": DirectAgent(model=ScriptedModel(["4"]))}
    Study("sums", agents, Suite("sums", [Task("one", "What is 2 + 3?", 5)])).run(tmp_path, False)
    with viewing(tmp_path) as url:
        (row,) = rows(url)
        assert (row["answer"], row["expected"], row["state"]) == ("'4'", "5", "not resolved")
        page = get(url, f"e/{row['id']}.html")[2]
    assert "Expected: <code>5</code>" in page
    (static,) = write_trace_pages(load_study(tmp_path), tmp_path / "pages").values()
    assert "Expected: <code>5</code>" in (tmp_path / static).read_text("utf-8")


def test_rows_without_traces_are_shown_as_rows(tmp_path: Path) -> None:
    export(made_study(tmp_path / "study"), tmp_path / "packed", traces=False)
    with viewing(tmp_path / "packed") as url:
        status, _, page = get(url, f"e/{one(url, arm='hasty', task='hard-2')['id']}.html")
    assert status == 200
    assert "only its row" in page
    assert "Row of the study" in page


def test_one_trace_file_is_enough(tmp_path: Path) -> None:
    trace = run(tmp_path / "a.jsonl", CELL, "```python\nfinal_answer = 42\n```")
    with viewing(trace) as url:
        (row,) = rows(url)
        assert "print(" in get(url, f"e/{row['id']}.html")[2]


def test_a_session_of_the_meter_is_a_run(tmp_path: Path) -> None:
    with metered_endpoint(ScriptedModel(["Hello."]), out=tmp_path) as address:
        body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "A question?"}]})
        asked = http.client.HTTPConnection(urlsplit(address).netloc)
        asked.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        assert asked.getresponse().read()
        asked.close()
    with viewing(tmp_path) as url:
        (row,) = rows(url)
        assert (row["arm"], row["task"], row["stop"], row["answer"]) == (
            "metered",
            "session default",
            "answered",
            "Hello.",
        )


def test_what_is_damaged_is_said(tmp_path: Path) -> None:
    study = made_study(tmp_path / "study")
    with (study / "results.jsonl").open("a") as file:
        file.write('{"torn\n{}\n')
    with viewing(tmp_path) as url:
        assert any("results.jsonl" in note for note in json.loads(get(url, "rows.json")[2])["notes"])
        assert rows(url)  # the traces are still shown


def test_a_row_cannot_name_a_file_outside(tmp_path: Path) -> None:
    study = made_study(tmp_path / "in" / "study")
    run(tmp_path / "secret.jsonl", "the secret")
    lines = (study / "results.jsonl").read_text().splitlines()
    row = {**json.loads(lines[-1]), "trace": "../../secret.jsonl"}
    (study / "results.jsonl").write_text("\n".join([*lines[:-1], json.dumps(row)]) + "\n")
    with viewing(tmp_path / "in") as url:
        pages = [get(url, "")[2], *(get(url, f"e/{here['id']}.html")[2] for here in rows(url))]
        assert not any("the secret" in page for page in pages)


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1", "127.0.0.1:1", "localhost.example.org"])
def test_another_name_is_refused(server: str, host: str) -> None:
    for path in ("", "rows.json"):
        status, _, text = get(server, path, Host=host)
        assert (status, "episodes" in text) == (403, False)


def test_it_only_reads(server: str) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        assert get(server, "", method=method)[0] == 501
    for path in ("e/../../etc/passwd", "e/nobody.html", "side.html?a=x&b=y", "x"):
        assert get(server, path)[0] == 404, path
    _, headers, _ = get(server, "")
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
