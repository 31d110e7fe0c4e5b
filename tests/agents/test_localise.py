"""Files ranked by BM25, and what agents are told of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.agents.localise import Localise, rank_files
from rlm_loop.models import ScriptedModel
from rlm_loop.tasks import Score, Task
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace

FILES = {
    "app/parser.py": "def parse_date(text):\n    return text.split('-')\n",
    "app/server.py": "class HttpServer:\n    def start(self):\n        self.retryLimit = 3\n",
    "app/empty.py": "",
    "docs/notes.md": "The date parser reads dates. parse_date is slow.\n",
    "tests/test_parser.py": "from app.parser import parse_date\n\ndef test_it():\n    assert parse_date('1-2')\n",
}
QUESTION = "parseDate in the parser drops the day of a date"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("the http server forgets its retry limit", "app/server.py"),
        ("HttpServer.start", "app/server.py"),
        ("why is there a file called empty", "app/empty.py"),  # its path is all that there is
        ("notes", "docs/notes.md"),
    ],
)
def test_the_file_that_is_meant_comes_first(query: str, first: str) -> None:
    assert rank_files(FILES, query)[0] == first


def test_patterns_leave_out_and_most_cuts() -> None:
    names = rank_files(FILES, QUESTION, leave_out=["tests/*", "*.md"])
    assert names[0] == "app/parser.py"
    assert not any(name.startswith("tests/") or name.endswith(".md") for name in names)
    assert rank_files(FILES, QUESTION, most=1) == rank_files(FILES, QUESTION)[:1]


@pytest.mark.parametrize("query", ["", "?!", "zzz unheard_of", "a"])
def test_a_query_that_shares_no_word_finds_nothing(query: str) -> None:
    assert rank_files({"x.py": "one two", "y.py": "two three"}, query) == []


def test_no_files_and_empty_files_are_no_error() -> None:
    assert rank_files({}, "x1") == []
    assert rank_files({"a.py": "", "!": ""}, "other words") == []


def test_ties_are_in_the_order_of_names_whatever_the_order_of_files() -> None:
    same = {f"f{n}{n}.txt": "alpha beta" for n in (3, 1, 2)}
    found = rank_files(same, "alpha")
    assert found == ["f11.txt", "f22.txt", "f33.txt"]
    assert found == rank_files(dict(reversed(same.items())), "alpha")


def test_a_folder_is_read_without_links_binary_and_large_files(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("needle")
    (tmp_path / "bin.dat").write_bytes(b"needle\0")
    (tmp_path / "big.txt").write_text("needle " * 200_000)
    (tmp_path / "latin.txt").write_bytes("needle größe".encode("latin-1"))
    (tmp_path.parent / "outside.py").write_text("needle")
    (tmp_path / "link.py").symlink_to(tmp_path.parent / "outside.py")
    assert set(rank_files(tmp_path, "needle")) == {"good.py", "latin.txt"}


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[localise\]"'):
        rank_files(FILES, QUESTION)


def test_no_files_are_refused() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Localise(files=0)


def unscored(attempt: object) -> Score:
    return Score(False)


TASK = Task("t", QUESTION, unscored, workspace=lambda: Workspace(FILES), needs_repl=False)
AGENTS = [
    ToolLoopAgent(),
    LeanAgent(presentation="native"),
    LeanAgent(presentation="text"),
    ReActAgent(),
    ReActAgent(form="calls", presentation="text"),
    DirectAgent(),
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda a: a.name)
def test_every_dialect_is_told_after_the_question_under_causes_of_its_own(agent: Agent) -> None:
    reply = 'Thought: ok\nAction: finish\nAction Input: {"answer": "x"}' if agent.name == "react" else "done"
    prompts = []
    for localise in (None, Localise(files=2)):
        model = ScriptedModel([reply] * 3)
        outcome = replace(
            agent, model=model, injectors=[] if localise is None else [*agent.injectors, localise]
        ).attempt(TASK)
        prompts.append((model.prompts[0], outcome.ledger.by_cause()))
    (without, few), (told, many) = prompts
    assert {c for c in many if c.startswith("scaffold:file")} == {"scaffold:file_list"}
    assert not any(c.startswith("scaffold:file") for c in few)
    text = "\n".join(m.text for m in told.messages)
    assert text.index(QUESTION) < text.index("Files that fit")
    assert "def parse_date" not in text  # names only
    kept = [s for m in told.messages for s in m.spans if not s.cause.startswith("scaffold:file")]
    assert kept == [s for m in without.messages for s in m.spans]  # nothing else differs


def test_the_texts_come_before_what_a_strategy_adds_itself() -> None:
    agent = ReActAgent(form="calls", presentation="text", model=ScriptedModel(["x"] * 9), injectors=[Localise(files=1)])
    agent.attempt(TASK, trace=(trace := Trace()))
    first = next(e for e in trace.events if e["event"] == "message" and e["message"]["role"] == "user")
    causes = [s["cause"] for s in first["message"]["spans"]]
    assert causes[:2] == ["task", "scaffold:file_list"]
    assert "scaffold:thought" in causes[2:]


def test_a_question_of_the_users_with_a_workspace_is_told_too() -> None:
    model = ScriptedModel(["done"])
    with Workspace(FILES) as space:
        LeanAgent(model=model, presentation="text", injectors=[Localise(files=1)]).run(QUESTION, workspace=space)
    assert model.prompts[0].messages[-1].spans[-1].cause == "scaffold:file_list"


def test_without_a_workspace_nothing_is_said() -> None:
    model = ScriptedModel(["done"])
    LeanAgent(model=model, presentation="text", injectors=[Localise(files=5)]).run("What?")
    assert [s.cause for m in model.prompts[0].messages for s in m.spans] == ["system", "task"]


def test_changed_files_are_ranked_anew() -> None:
    settings = Localise(files=1, leave_out=["tests/*"])
    with Workspace(FILES) as space:
        before = settings.told("HttpServer", space)
        (space.root / "app" / "server.py").write_text("nothing")
        (space.root / "app" / "web.py").write_text("class HttpServer: ...\n" * 3)
        assert before[0].text.endswith("app/server.py")
        assert settings.told("class HttpServer", space)[0].text.endswith("app/web.py")
