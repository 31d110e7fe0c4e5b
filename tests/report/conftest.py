"""What several tests of reports share."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from made_run import everything, long_run
from made_study import made_study

from rlm_loop import ToolLoopAgent
from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel
from rlm_loop.report import run_page, viewing, write_study_page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for the tests of a module."""
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path | str]]:
    """A page of each kind: files, and addresses of the folder `runs` with a study and two runs of none."""
    folder = tmp_path_factory.mktemp("pages")
    study = made_study(folder / "runs" / "study")
    for answer in ("41", "42"):
        model = ScriptedModel(["```python\nprint(6 * 7)\n```", f"```python\nfinal_answer = {answer}\n```"])
        ToolLoopAgent(model=model).run("How many?", trace=folder / "runs" / f"{answer}.jsonl")
    made = {name: folder / f"{name}.html" for name in ("run", "long run", "study", "compare")}
    made["run"].write_text(run_page(everything(folder / "run.jsonl")), encoding="utf-8")
    made["long run"].write_text(run_page(long_run(folder / "long.jsonl", 60)), encoding="utf-8")
    write_study_page(study, made["study"])
    main(["compare", str(study), "--html", str(made["compare"])])
    with viewing(folder / "runs") as url:
        with urllib.request.urlopen(f"{url}rows.json") as answer:
            data = json.load(answer)
        rows = [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]
        episode = next(row["id"] for row in rows if (row["arm"], row["task"]) == ("careful", "hard-2"))
        yield {**made, "table": url, "episode": f"{url}e/{episode}.html"}
