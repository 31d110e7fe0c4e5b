"""Every command that takes a folder, a trace or a file, given another thing: one line that says the next step."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

from rlm_loop import LeanAgent, ScriptedModel, Task
from rlm_loop.cli.main import main
from rlm_loop.study import Study

STUDY = [
    ("study", "status"),
    ("study", "report"),
    ("study", "compact"),
    ("study", "rescore"),
    ("study", "export", "--to", "atif", "--out", "out"),
    ("swebench", "predictions", "--out", "out"),
]
TRACE = [
    ("trace", "show"),
    ("trace", "runs"),
    ("trace", "tree"),
    ("trace", "price"),
    ("trace", "cache"),
    ("trace", "replay"),
    ("trace", "export", "--to", "atif", "--out", "out"),
]
EXPERIMENT = [("study", "run"), ("study", "resume"), ("study", "fairness-check")]

OF_A_STUDY = {
    "results.zip": "it is an archive; unpack it (`unzip results.zip`) and give the folder that has study.json",
    "results.tar.gz": "it is an archive; unpack it (`tar xf results.tar.gz`) and give the folder",
    "results.tgz": "it is an archive; unpack it (`tar xf results.tgz`)",
    "runs": "folders below it do; give one of them, such as runs/mine",
    "runs/mine/study.json": "it is a file of one; give its folder, runs/mine",
    "runs/mine/traces": "no study.json; run one there, or give another folder",
    "runs/mina": "no such folder; did you mean runs/mine? `rlm-loop study list` shows",
    "study.py": "it is Python; `rlm-loop study run study.py` runs it",
    "notes.txt": "it is a file; give the folder that has study.json",
    "run.jsonl": "it is a file; `rlm-loop trace show run.jsonl` reads a trace",
    "empty": "no study.json; run one there",
}
OF_A_TRACE = {
    "results.zip": "it is an archive; unpack it (`unzip results.zip`) and name a file of it",
    "results.tar.gz": "it is an archive; unpack it (`tar xf results.tar.gz`)",
    "runs/mine": "it holds those of a study; `rlm-loop view runs/mine` shows them all",
    "runs": "it is a folder; `rlm-loop view runs` shows the runs below it",
    ".": "it is a folder; name a file of it, such as run.jsonl",
    "run.json": "No such file; did you mean run.jsonl?",
}
OF_AN_EXPERIMENT = {
    "results.zip": "is not a Python file: unpack it (`unzip results.zip`) and give one that defines study()",
    "notes.txt": "is not a Python file; give one that defines study(), or its folder",
    "runs/mine": "these are the results of one: give a Python file that defines study()",
    "empty": "`rlm-loop study init empty` makes one, or give a Python file",
    "nowhere": "there is no experiment nowhere; `rlm-loop study init` writes one",
}
OTHERS = [
    (("compare", "results.zip"), "results.zip is an archive: unpack it (`unzip results.zip`)"),
    (("compare", "nowhere"), "there is no nowhere; give a file of results, or a folder that holds some"),
    (("view", "results.tar.gz"), "is an archive: unpack it (`tar xf results.tar.gz`) and name the folder"),
    (("view", "nowhere"), "there is no folder nowhere; name one that a study"),
    (("study", "list", "results.zip"), "results.zip is no folder: name one that has studies below it"),
    (("run", "How many?", "--context", "results.zip"), "is an archive: unpack it (`unzip results.zip`)"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of each kind of thing."""
    folder = tmp_path_factory.mktemp("places")
    Study("mine", LeanAgent(model=ScriptedModel(["4"])), [Task("a", "2 + 2?", 4)]).run(folder / "runs" / "mine", False)
    LeanAgent(model=ScriptedModel(["4"])).run("2 + 2?", trace=folder / "run.jsonl")
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("mine\n")
    (folder / "study.py").write_text("x = 1\n")
    with zipfile.ZipFile(folder / "results.zip", "w") as packed:
        packed.write(folder / "runs" / "mine" / "study.json", "mine/study.json")
    for name in ("results.tar.gz", "results.tgz"):
        with tarfile.open(folder / name, "w:gz") as tar:
            tar.add(folder / "runs" / "mine", "mine")
    return folder


CASES = [
    *((command, path, said) for command in STUDY for path, said in OF_A_STUDY.items()),
    *((command, path, said) for command in TRACE for path, said in OF_A_TRACE.items()),
    *((command, path, said) for command in EXPERIMENT for path, said in OF_AN_EXPERIMENT.items()),
    *((command[:1], command[1:], said) for command, said in OTHERS),
]
#: What these commands take all the same: archives of traces, and the record of a check.
TAKEN = [("trace replay", "results.tar.gz"), ("study fairness-check", "runs/mine")]
CASES = [case for case in CASES if (" ".join(case[0][:2]), case[1]) not in TAKEN]


@pytest.mark.parametrize(
    ("command", "path", "said"),
    CASES,
    ids=[f"{' '.join(c[:2])} {p if isinstance(p, str) else p[0]}" for c, p, _ in CASES],
)
def test_the_next_step_is_said(
    command: tuple[str, ...],
    path: str | tuple[str, ...],
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    given = [path] if isinstance(path, str) else list(path)
    assert main([*command[:2], *given, *command[2:]]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert sorted(place.rglob("*")) == before  # nothing was written
