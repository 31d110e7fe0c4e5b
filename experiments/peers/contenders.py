"""Who takes part: the other frameworks, each with its pinned packages, and our own two loops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PINS = HERE / "constraints"


@dataclass(frozen=True)
class Contender:
    """One framework's loop.

    `driver` is the file in `drivers/`, `form` how its replies are written (see `wire_session`), `packages` what is
    installed, `environment` the folder's name (loops of one framework share it), `pins` the file that pins what those
    need.  `loop` is what it is called in tables.  `ours` run in this Python.  `sends_calls_back`: whether later prompts
    hold the model's calls (mellea 0.8.0 leaves them out, and sends only the text beside them and the results).
    """

    name: str
    loop: str
    form: str
    environment: str = ""
    packages: tuple[str, ...] = ()
    pins: Path = HERE
    ours: bool = False
    sends_calls_back: bool = True

    @property
    def driver(self) -> Path:
        return HERE / "drivers" / f"{self.name}.py"

    @property
    def calls_functions(self) -> bool:
        """Whether its actions are calls of one tool, rather than code or commands."""
        return self.form in ("calls", "calls_final", "fields_calls")


_RLMS = ("rlms", ("rlms==0.1.3",), PINS / "rlms.txt")
_SMOL = ("smolagents_openai", ("smolagents[openai]==1.26.0",), PINS / "smolagents_openai.txt")
_DSPY = ("dspy", ("dspy==3.4.1", "deno==2.9.8"), PINS / "dspy.txt")
_MELLEA = ("mellea", ("mellea==0.8.0",), PINS / "mellea.txt")
#: litellm imports `mcp` where a request has tools, and does not ask for it.
_MINI = ("mini", ("mini-swe-agent==2.4.6", "mcp==2.3.0"), PINS / "mini.txt")
_PYDANTIC = ("pydantic_ai", ("pydantic-ai-slim[openai]==2.68.0",), PINS / "pydantic_ai.txt")
_AGENTS = ("openai_agents", ("openai-agents==0.24.0",), PINS / "openai_agents.txt")

CONTENDERS = (
    Contender("rlms", "rlms `RLM`", "repl", *_RLMS),
    Contender("smolagents_code", "smolagents `CodeAgent`", "tags", *_SMOL),
    Contender("dspy_rlm", "dspy `RLM`", "fields_code", *_DSPY),
    Contender("mini_text", "mini-swe-agent, text", "command", *_MINI),
    Contender("ours_code", "ours, `ToolLoopAgent`", "python", ours=True),
    Contender("smolagents_tools", "smolagents `ToolCallingAgent`", "calls_final", *_SMOL),
    Contender("dspy_react", "dspy `ReAct`", "fields_calls", *_DSPY),
    Contender("mellea_react", "mellea `react`", "calls_final", *_MELLEA, sends_calls_back=False),
    Contender("mini_tools", "mini-swe-agent, tool calls", "bash_call", *_MINI),
    Contender("pydantic_ai_agent", "pydantic-ai `Agent`", "calls", *_PYDANTIC),
    Contender("openai_agents", "OpenAI Agents SDK", "calls", *_AGENTS),
    Contender("ours_lean", "ours, `LeanAgent`", "calls", ours=True),
    Contender("ours_lean_plain", "ours, `LeanAgent(answer_tool=False)`", "calls", ours=True),
)


def chosen(names: str) -> list[Contender]:
    """The contenders of these names, separated by commas; all for an empty text.  Raises `ValueError` for others."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := sorted(set(wanted) - {one.name for one in CONTENDERS}):
        raise ValueError(f"unknown: {', '.join(unknown)}; known are {', '.join(one.name for one in CONTENDERS)}")
    return [one for one in CONTENDERS if not wanted or one.name in wanted]
