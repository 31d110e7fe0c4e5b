"""Who takes part: each agent as it is released, with what its own documentation says to point it at another address.

Nothing of an agent is changed.  Settings are: the address, a key that says nothing, telemetry, update checks and other
traffic off, and that tools need no approval.  Everything else is the agent's default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SERVER = "stock"  # the MCP server of ten tools


@dataclass(frozen=True)
class Place:
    """Where one run is: `bin` of the installed packages, its throw-away `home` and `work` folders, the meter's address
    (`root`, without /v1), the `task`, and the command of the MCP server where there is one."""

    bin: Path
    python: Path
    home: Path
    work: Path
    root: str
    task: str
    server: Sequence[str] = ()

    def write(self, name: str, text: str) -> Path:
        """A file of settings in the home folder."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def json(self, name: str, value: Any) -> Path:
        return self.write(name, json.dumps(value))


Commands = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Agent:
    """One agent.  `package` is where it is from, `begin` writes its settings and gives the commands to run (the last is
    the run itself), `env` are its variables, `memory` the file it reads as the project's memory, `mcp` whether it can
    use an MCP server, `program` what it is called on PATH (empty: a package of Python).  `python` are the packages of a
    Python agent's own environment, `pins` the file below `experiments/` that fixes what these need."""

    name: str
    label: str
    package: str
    begin: Callable[[Place], Commands]
    env: Callable[[Place], Mapping[str, str]]
    memory: str = "AGENTS.md"
    mcp: bool = True
    python: tuple[str, ...] = ()
    pins: str = ""
    program: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _server(place: Place) -> dict[str, Any]:
    command, *arguments = place.server
    return {"command": command, "args": arguments}


def _servers(place: Place) -> dict[str, Any]:
    return {"mcpServers": {SERVER: _server(place)}} if place.server else {}


def _claude(place: Place) -> Commands:
    tools = ["--allowedTools", "Bash,Read,Edit,Write"]
    more = ["--mcp-config", str(place.json("mcp.json", _servers(place))), "--strict-mcp-config"] if place.server else []
    return [[str(place.bin / "claude"), "-p", place.task, "--permission-mode", "acceptEdits", *tools, *more]]


def _claude_env(place: Place) -> dict[str, str]:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")
    quiet += ("DISABLE_AUTOUPDATER",)
    return {"ANTHROPIC_BASE_URL": place.root, "ANTHROPIC_API_KEY": "any", **dict.fromkeys(quiet, "1")}


def _codex(model: str | None) -> Callable[[Place], Commands]:
    def begin(place: Place) -> Commands:
        lines = [f'model = "{model}"'] if model else []
        lines += ['model_provider = "meter"', "check_for_update_on_startup = false", "[analytics]", "enabled = false"]
        lines += ["[model_providers.meter]", 'name = "meter"', f'base_url = "{place.root}/v1"', 'env_key = "METER_KEY"']
        lines += ['wire_api = "responses"']
        if place.server:
            command, *arguments = place.server
            lines += [f"[mcp_servers.{SERVER}]", f"command = {json.dumps(command)}", f"args = {json.dumps(arguments)}"]
        place.write(".codex/config.toml", "\n".join(lines) + "\n")
        return [[str(place.bin / "codex"), "exec", "--dangerously-bypass-approvals-and-sandbox", place.task]]

    return begin


def _qwen(place: Place) -> Commands:
    quiet = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    place.json(".qwen/settings.json", {**quiet, "general": {"disableAutoUpdate": True}, **_servers(place)})
    return [[str(place.bin / "qwen"), "--auth-type", "openai", "--yolo", "-p", place.task]]


def _qwen_env(place: Place) -> dict[str, str]:
    quiet = {"QWEN_TELEMETRY_ENABLED": "false", "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
    return {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": f"{place.root}/v1", "OPENAI_MODEL": "scripted", **quiet}


def _gemini(place: Place) -> Commands:
    quiet = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    place.json(".gemini/settings.json", {**quiet, **auth, "general": {"enableAutoUpdate": False}, **_servers(place)})
    return [[str(place.bin / "gemini"), "--yolo", "--skip-trust", "-p", place.task]]


def _opencode(place: Place) -> Commands:
    model = {"name": "scripted", "limit": {"context": 200000, "output": 8000}, "tool_call": True}
    meter = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "meter",
        "options": {"baseURL": f"{place.root}/v1", "apiKey": "any"},
        "models": {"scripted": model},
    }
    settings: dict[str, Any] = {
        "model": "meter/scripted",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"meter": meter},
    }
    if place.server:
        settings["mcp"] = {SERVER: {"type": "local", "command": list(place.server), "enabled": True}}
    place.json(".config/opencode/opencode.json", settings)
    return [[str(place.bin / "opencode"), "run", place.task]]


def _pi(place: Place) -> Commands:
    model = {"id": "scripted", "name": "scripted", "contextWindow": 200000, "maxTokens": 8000}
    meter = {"baseUrl": f"{place.root}/v1", "apiKey": "any", "api": "openai-completions", "models": [model]}
    place.json(".pi/agent/models.json", {"providers": {"meter": meter}})
    return [[str(place.bin / "pi"), "--provider", "meter", "--model", "scripted", "-p", place.task]]


def _cline(place: Place) -> Commands:
    cline, provider = str(place.bin / "cline"), "openai-compatible"
    commands = [[cline, "auth", provider, "-k", "any", "-m", "scripted", "-b", f"{place.root}/v1"]]
    if place.server:
        commands.append([cline, "mcp", "add", SERVER, "--yes", "--", *place.server])
    return [*commands, [cline, "--auto-approve", "true", "-P", provider, place.task]]


def _mini(place: Place) -> Commands:
    mini = [
        str(place.python.parent / "mini"),
        "-t",
        place.task,
        "-m",
        "openai/scripted",
        "--yolo",
        "--exit-immediately",
    ]
    return [
        [
            *mini,
            "-c",
            "mini.yaml",
            "-c",
            f"model.model_kwargs.api_base={place.root}/v1",
            "-o",
            str(place.home / "out.json"),
        ]
    ]


def _mini_env(place: Place) -> dict[str, str]:
    quiet = {"MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1", "MSWEA_CONFIGURED": "1"}
    quiet |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_GLOBAL_CONFIG_DIR": str(place.home)}
    return {"OPENAI_API_KEY": "any", **quiet}


def _ours(loop: str) -> Callable[[Place], Commands]:
    return lambda place: [
        [str(place.python), str(HERE / "ours.py"), loop, f"{place.root}/v1", str(place.work), place.task]
    ]


def _framework(name: str, label: str, *packages: str, pins: str = "") -> Agent:
    def begin(place: Place) -> Commands:
        script = str(HERE / "frameworks.py")
        return [[str(place.python), script, name, f"{place.root}/v1", str(place.work), place.task]]

    quiet = {"OPENAI_API_KEY": "any", "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
    quiet |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MELLEA_TRACE_APPLICATION": "false"}
    quiet |= {"MELLEA_TRACE_BACKEND": "false", "HF_HUB_OFFLINE": "1"}
    package = packages[0].partition("==")[0].partition("[")[0]
    own = pins or f"peers/constraints/{name}.txt"
    return Agent(name, label, package, begin, lambda _: quiet, memory="", mcp=False, python=packages, pins=own)


def _no_env(place: Place) -> Mapping[str, str]:
    return {}


_SMOL_PINS = "peers/constraints/smolagents_openai.txt"

AGENTS: tuple[Agent, ...] = (
    Agent(
        "claude_code", "Claude Code", "@anthropic-ai/claude-code", _claude, _claude_env, "CLAUDE.md", program="claude"
    ),
    Agent("codex", "Codex", "@openai/codex", _codex(None), lambda _: {"METER_KEY": "any"}, program="codex"),
    Agent("codex_tools", "Codex (gpt-5.5)", "@openai/codex", _codex("gpt-5.5"), lambda _: {"METER_KEY": "any"}),
    Agent(
        "gemini_cli",
        "Gemini CLI",
        "@google/gemini-cli",
        _gemini,
        lambda place: {"GEMINI_API_KEY": "any", "GOOGLE_GEMINI_BASE_URL": place.root},
        memory="GEMINI.md",
        program="gemini",
    ),
    Agent("qwen_code", "Qwen Code", "@qwen-code/qwen-code", _qwen, _qwen_env, "QWEN.md", program="qwen"),
    Agent(
        "opencode",
        "opencode",
        "opencode-ai",
        _opencode,
        lambda _: dict.fromkeys(
            ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"), "1"
        ),
        program="opencode",
    ),
    Agent("cline", "Cline", "cline", _cline, lambda _: {"CLINE_NO_AUTO_UPDATE": "1"}, ".clinerules", program="cline"),
    Agent(
        "pi",
        "pi",
        "@mariozechner/pi-coding-agent",
        _pi,
        lambda _: {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
        mcp=False,
        program="pi",
    ),
    Agent(
        "mini_swe_agent",
        "mini-swe-agent",
        "mini-swe-agent",
        _mini,
        _mini_env,
        memory="",
        mcp=False,
        python=("mini-swe-agent==2.4.6", "mcp==2.3.0"),
        pins="peers/constraints/mini.txt",
        program="mini",
    ),
    _framework("pydantic_ai", "pydantic-ai", "pydantic-ai-slim[openai]==2.68.0"),
    _framework("openai_agents", "OpenAI Agents SDK", "openai-agents==0.24.0"),
    _framework("smolagents", "smolagents (tools)", "smolagents[openai]==1.26.0", pins=_SMOL_PINS),
    _framework("langgraph", "LangChain on LangGraph", "langchain==1.5.2", "langchain-openai==1.7.4"),
    _framework("deepagents", "deepagents", "deepagents==0.7.32", "langchain-openai==1.7.3"),
    _framework("mellea", "mellea react", "mellea==0.8.0", pins="peers/constraints/mellea.txt"),
    _framework("smolagents_code", "smolagents (code)", "smolagents[openai]==1.26.0", pins=_SMOL_PINS),
    _framework("rlms", "rlms RLM", "rlms==0.1.3", pins="peers/constraints/rlms.txt"),
    _framework("minrlm", "minRLM", "minrlm==0.1.5"),
    _framework("dspy_react", "dspy ReAct", "dspy==3.4.1", pins="peers/constraints/dspy.txt"),
    _framework("dspy_rlm", "dspy RLM", "dspy==3.4.1", pins="peers/constraints/dspy.txt"),
    Agent("lean_agent", "LeanAgent (ours)", "rlm-loop-toolkit", _ours("lean"), _no_env, memory="", mcp=False),
    Agent("react_agent", "ReActAgent (ours)", "rlm-loop-toolkit", _ours("react"), _no_env, memory="", mcp=False),
    Agent("tool_loop_agent", "ToolLoopAgent (ours)", "rlm-loop-toolkit", _ours("code"), _no_env, memory="", mcp=False),
)
