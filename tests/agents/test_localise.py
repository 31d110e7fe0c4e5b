"""Files ranked by BM25, and what agents are told of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.agents.localise import Localise, rank_files
from rlm_loop.models import ScriptedModel
from rlm_loop.tasks import Score, Task
from rlm_loop.workspace import Workspace
from tests.agents.replies import react

FILES = {
    "app/parser.py": "def parse_date(text):\n    return text.split('-')\n",
    "app/server.py": "class HttpServer:\n    def start(self):\n        self.retryLimit = 3\n",
    "app/empty.py": "",
    "docs/notes.md": "The date parser reads dates. parse_date is slow.\n",
    "tests/test_parser.py": "from app.parser import parse_date\n\ndef test_it():\n    assert parse_date('1-2')\n",
}
QUESTION = "parseDate in the parser drops the day of a date"


def folder(root: Path, files: dict[str, str] = FILES) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("the http server forgets its retry limit", "app/server.py"),
        ("HttpServer.start", "app/server.py"),
        ("why is there a file called empty", "app/empty.py"),  # its path is all that there is
        ("notes", "docs/notes.md"),
    ],
)
def test_the_file_that_is_meant_comes_first(query: str, first: str, tmp_path: Path) -> None:
    assert rank_files(folder(tmp_path), query)[0] == first


def test_patterns_leave_out_and_most_cuts(tmp_path: Path) -> None:
    names = rank_files(folder(tmp_path), QUESTION, leave_out=["tests/*", "*.md"])
    assert (names[0], {"docs/notes.md", "tests/test_parser.py"} & {*names}) == ("app/parser.py", set())
    assert rank_files(tmp_path, QUESTION, most=1) == rank_files(tmp_path, QUESTION)[:1]


@pytest.mark.parametrize("query", ["", "?!", "zzz unheard_of", "a"])
@pytest.mark.parametrize("files", [{"x.py": "one two", "y.py": "two three"}, {}, {"b.py": "", "!": ""}])
def test_a_query_that_shares_no_word_finds_nothing(files: dict[str, str], query: str, tmp_path: Path) -> None:
    assert rank_files(folder(tmp_path, files), query) == []


def test_ties_are_in_the_order_of_names(tmp_path: Path) -> None:
    same = {f"f{n}{n}.txt": "alpha beta" for n in (3, 1, 2)}
    assert rank_files(folder(tmp_path, same), "alpha") == ["f11.txt", "f22.txt", "f33.txt"]


def test_a_folder_is_read_without_links_binary_and_large_files(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("needle")
    (tmp_path / "bin.dat").write_bytes(b"needle\0")
    (tmp_path / "big.txt").write_text("needle " * 200_000)
    (tmp_path / "latin.txt").write_bytes("needle größe".encode("latin-1"))
    (tmp_path.parent / "outside.py").write_text("needle")
    (tmp_path / "link.py").symlink_to(tmp_path.parent / "outside.py")
    assert set(rank_files(tmp_path, "needle")) == {"good.py", "latin.txt"}


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[localise\]"'):
        rank_files(folder(tmp_path), QUESTION)


TASK = Task("t", QUESTION, lambda _: Score(False), workspace=lambda: Workspace(FILES), needs_repl=False)
CALLS = ReActAgent(form="calls", presentation="text")
AGENTS = [ToolLoopAgent(), LeanAgent(presentation="native"), ReActAgent(), CALLS]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda a: a.name)
def test_every_dialect_is_told_after_the_question_under_causes_of_its_own(agent: Agent) -> None:
    reply = react("finish", answer="x") if agent.name == "react" else "done"
    prompts = []
    for localise in ([], [Localise(files=2)]):
        model = ScriptedModel([reply] * 3)
        outcome = replace(agent, model=model, injectors=[*agent.injectors, *localise]).attempt(TASK)
        prompts.append((model.prompts[0], outcome.ledger.by_cause()))
    (without, few), (told, many) = prompts
    assert {c for c in many if c.startswith("scaffold:file")} == {"scaffold:file_list"}
    assert not any(c.startswith("scaffold:file") for c in few)
    text = "\n".join(m.text for m in told.messages)
    assert text.index(QUESTION) < text.index("Files that fit")
    assert "def parse_date" not in text  # names only
    spans = [s for m in told.messages for s in m.spans]
    kept = [s for s in spans if not s.cause.startswith("scaffold:file")]
    assert kept == [s for m in without.messages for s in m.spans]  # nothing else differs
    if agent is CALLS:  # the texts come before what a strategy adds itself
        causes = [s.cause for s in spans]
        assert causes.index("task") + 1 == causes.index("scaffold:file_list") < causes.index("scaffold:thought")


@pytest.mark.parametrize(("inside", "causes"), [(True, ["task", "scaffold:file_list"]), (False, ["system", "task"])])
def test_a_question_of_the_users_is_told_of_them_where_it_has_a_workspace(inside: bool, causes: list[str]) -> None:
    model = ScriptedModel(["done"])
    with Workspace(FILES) as space:
        agent = LeanAgent(model=model, presentation="text", injectors=[Localise(files=1)])
        agent.run(QUESTION, workspace=space if inside else None)
    assert [s.cause for m in model.prompts[0].messages for s in m.spans][-2:] == causes


def test_changed_files_are_ranked_anew() -> None:
    settings = Localise(files=1, leave_out=["tests/*"])
    with Workspace(FILES) as space:
        before = settings.told("HttpServer", space)
        (space.root / "app" / "server.py").write_text("nothing")
        (space.root / "app" / "web.py").write_text("class HttpServer: ...\n" * 3)
        assert before[0].text.endswith("app/server.py")
        assert settings.told("class HttpServer", space)[0].text.endswith("app/web.py")
