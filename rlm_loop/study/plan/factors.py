"""What two arms can differ in: a closed list, and what an arm has of each, out of its settings and first request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from rlm_loop.agents.agent import FirstRequest
from rlm_loop.dialects.injectors import Injected
from rlm_loop.dialects.wording import tool_lines
from rlm_loop.models.base import Model
from rlm_loop.models.names import Seeded, model_name
from rlm_loop.study.plan.grid import StudyAgent, arm_settings, models_of
from rlm_loop.tasks.base import Task

#: The factors that a study may declare in `differs`, and what each covers.
FACTORS: Mapping[str, str] = {
    "model": "which model answers, and which one sub-calls",
    "sampling": "seed, tokens of a reply, and the model's own settings (temperature ...)",
    "budget": "the limits of a run, of sub-calls, of a cell and of a tool",
    "loop": "the strategy: how a reply is read, what ends a run, how a turn is shown",
    "reply_format": "stop strings, and the grammar that a reply is held to",
    "system": "the fixed text before the question, without the list of tools",
    "injectors": "the text that a strategy adds around the question and after turns",
    "tools": "which tools there are (those that a loop acts with are `tool_presentation`)",
    "tool_order": "the order of the tools that both have",
    "tool_schema": "the bytes of the schemas of the tools that both have",
    "tool_presentation": "how tools are shown and called: schemas, a text list, functions in the REPL",
    "data": "the question, and what is told of or shown from its material",
    "history": "what is left out of a long history",
    "recursion": "how deep sub-calls may go, and how many at a time",
    "repl": "where code runs",
    "answer_check": "the type or check that an answer has to pass",
    "other": "any setting that is none of the above",
}

#: What a loop acts with; a task has no tools of these names.
PROTOCOL = ("python", "final_answer", "finish")

_OF = {
    "sampling": ("max_tokens", "temperature"),
    "budget": ("budget",),
    "loop": ("agent", "form"),
    "system": ("system",),
    "injectors": ("injectors",),
    "data": ("window",),
    "history": ("history",),
    "recursion": ("subcalls",),
}
_SYSTEM, _PRESENTED = ("rule", "native_rule"), ("heading", "presentation")


@runtime_checkable
class Beginning(Protocol):
    """An arm whose first request can be made without a model."""

    def first_request(self, task: Task) -> FirstRequest: ...


def factors_of(agent: StudyAgent, request: FirstRequest | None) -> dict[str, Any]:
    """What an arm has of each factor, as JSON.  Of an agent that is not ours only the settings are known: `other`."""
    settings = arm_settings(agent)
    found: dict[str, Any] = {factor: {} for factor in FACTORS}
    models = models_of(agent)
    found["model"] = {role: model_name(model) for role, model in models.items()}
    model = models.get("model")
    seed = model.seed if isinstance(model, Seeded) else agent.settings().get("seed")
    found["sampling"] = {"seed": seed, "model": model.sampling if isinstance(model, Model) else None}
    rules: dict[str, Any] = settings.pop("rules", None) or {}
    found["tools"] = {"allow": rules.pop("allow", None)}
    for name in ("model", "models"):  # compared as models
        (settings.get("subcalls") or {}).pop(name, None)
    found["loop"] |= rules
    found["repl"] = _called(getattr(agent, "repl", None))
    found["answer_check"] = {name: _called(getattr(agent, name, None)) for name in ("answer_type", "verify")}
    dialect = settings.pop("dialect", None)
    for factor, keys in _OF.items():
        found[factor] |= {key: settings.pop(key) for key in keys if key in settings}
    if isinstance(dialect, dict):
        own, injectors = _inner(cast("dict[str, Any]", dialect))
        settings.pop("presentation", None)  # the dialect has what came of it
        found["injectors"]["injectors"] = injectors
        found["tool_presentation"] = {key: own.pop(key) for key in _PRESENTED if key in own}
        if request is None:
            found["system"] |= {key: own[key] for key in _SYSTEM if key in own}
        found["loop"]["dialect"] = {k: v for k, v in own.items() if k not in _SYSTEM}
    if request is not None:
        found["system"].pop("system", None)  # the request has what came of it
        _add_request(found, request)
    found["other"] = settings
    return found


def _inner(dialect: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The dialect without what is around it, and the injectors in the order in which they speak."""
    injectors: list[Any] = []
    while isinstance(dialect.get("dialect"), dict):
        injectors = [*dialect.get("injectors", ()), *injectors]  # an inner one speaks before an outer one
        dialect = dialect["dialect"]
    return dict(dialect), injectors


def _add_request(found: dict[str, Any], request: FirstRequest) -> None:
    prompt, tools = request.prompt, {t.name: t for t in request.tools}
    dialect = request.dialect
    while isinstance(dialect, Injected):
        dialect = dialect.dialect
    heading = str(getattr(dialect, "heading", ""))
    listed = [tool_lines(heading, tools), tool_lines(heading, {n: t for n, t in tools.items() if n != "final_answer"})]
    system = _texts(prompt.messages, "system")
    shown = next((lines for lines in listed if lines and lines in system), "")
    found["system"]["text"] = system.replace(shown, "").rstrip("\n") if shown else system
    found["data"]["text"] = _texts(prompt.messages, "task")
    scaffold = [[s.cause, s.text] for m in prompt.messages for s in m.spans if s.cause.startswith("scaffold:")]
    found["injectors"]["text"] = scaffold
    names = [n for n in tools if n not in PROTOCOL]
    found["tools"]["names"] = sorted(names)
    found["tool_order"] = names
    found["tool_schema"] = {n: json.dumps(dict(tools[n].schema), ensure_ascii=False) for n in names}
    found["tool_presentation"] |= {
        "hands": dialect.action_mode,
        "shown": "native" if prompt.tools else "text" if shown else "none",
        "own": [n for n in tools if n in PROTOCOL],
    }
    found["reply_format"] = {
        "stop": list(prompt.stop),
        "grammar": prompt.reply_schema is not None,  # it follows from the tools, which are compared themselves
    }


def _texts(messages: Iterable[Any], cause: str) -> str:
    return "".join(s.text for m in messages for s in m.spans if s.cause == cause)


def _called(value: Any) -> Any:
    """A setting as text that is the same in every process: functions and types by name."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(getattr(value, "__qualname__", type(value).__qualname__))
