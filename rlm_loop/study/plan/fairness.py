"""Fairness of a comparison: the first requests of all arms, side by side, before any model is called.

    print(fairness_check(study))                       # what differs, what was declared
    Study("mine", arms, suite, differs=("loop", "system"))   # anything else that differs stops the study: `Unfair`

For one task of each suite the first request of each arm is made as a run makes it, and split into `FACTORS`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from rlm_loop.agents.agent import FirstRequest
from rlm_loop.dialects.injectors import Injected
from rlm_loop.dialects.wording import tool_lines
from rlm_loop.messages import digest
from rlm_loop.models.base import Model
from rlm_loop.models.names import Seeded, model_name
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Agents, StudyAgent, arm_settings, in_turn, models_of
from rlm_loop.tasks.base import Task, current_suite

#: The factors that a study may declare in `differs`, and what each covers.
FACTORS: Mapping[str, str] = {
    "model": "which model answers, and which one sub-calls",
    "sampling": "seed, tokens of a reply, and the model's own settings (temperature ...)",
    "budget": "the limits of a run, of sub-calls, of a cell and of a tool",
    "loop": "the strategy: how a reply is read, what ends a run, how a turn is shown",
    "reply_format": "stop strings, and the grammar that a reply is held to",
    "system": "the fixed text before the question, without the list of tools",
    "injectors": "the text that a strategy adds around the question and after turns",
    "tools": "which tools there are, their order and the bytes of their schemas",
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

#: The settings that each factor is made of.
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
#: Fields of a dialect that the first request shows as text.
_SYSTEM, _PRESENTED = ("rule", "native_rule"), ("heading", "presentation")
#: Lines of one diff that are shown.
_MOST = 40


@dataclass(frozen=True)
class Probe:
    """A task as all arms begin it: by arm what it has of each factor (JSON), and the hash of its first request.

    A request is `None` where the arm cannot make one without a model (an agent that is not ours), or where making it
    failed.
    """

    model: str
    suite: str
    task: str
    arms: Mapping[str, Mapping[str, Any]]
    requests: Mapping[str, str | None]


@dataclass(frozen=True)
class ArmDifference:
    """A factor in which arms differ, on one task: groups of arms that are alike, the first arm's first."""

    factor: str
    probe: Probe
    groups: tuple[tuple[tuple[str, ...], Any], ...]

    @property
    def label(self) -> str:
        """The factor and the groups of arms."""
        return f"{self.factor}: {' | '.join(', '.join(group) for group, _ in self.groups)}"

    def diffs(self) -> Iterator[str]:
        """The lines in which each group differs from the first."""
        (base, left), *others = self.groups
        for group, right in others:
            lines = list(difflib.unified_diff(_lines(left), _lines(right), base[0], group[0], lineterm="", n=1))
            yield from lines[:_MOST]
            if len(lines) > _MOST:
                yield f"... {len(lines) - _MOST} more lines"


def _lines(value: Any) -> list[str]:
    """A value as lines of JSON, in which a text has lines of its own."""
    return json.dumps(value, indent=1, ensure_ascii=False).replace("\\n", "\n").split("\n")


@dataclass(frozen=True)
class FairnessCheck:
    """Comparison of the arms' first requests, and what was declared (`None`: nothing, so nothing is forbidden)."""

    study: str
    differs: tuple[str, ...] | None
    probes: tuple[Probe, ...]

    @property
    def differences(self) -> tuple[ArmDifference, ...]:
        """Every factor in which arms differ, task by task, in the order of `FACTORS`."""
        found = [_difference(probe, factor) for factor in FACTORS for probe in self.probes]
        return tuple(d for d in found if len(d.groups) > 1)

    @property
    def undeclared(self) -> tuple[ArmDifference, ...]:
        """The differences in factors that are not in `differs`; all of them where nothing was declared."""
        return tuple(d for d in self.differences if d.factor not in (self.differs or ()))

    @property
    def fair(self) -> bool:
        """True where nothing differs but what was declared; true for a study that declares nothing."""
        return self.differs is None or not self.undeclared

    def __str__(self) -> str:
        """The whole check as text, with a diff for each difference, of the first task that has it."""
        arms = list(dict.fromkeys(arm for p in self.probes for arm in p.arms))
        lines = [
            f"{self.study}: {len(arms)} arms ({', '.join(arms)}), compared on {len(self.probes)} first requests each"
        ]
        differ = "differs" if self.differs is None else "UNDECLARED"
        standing = {d.factor: "declared" if d.factor in (self.differs or ()) else differ for d in self.differences}
        lines += [f"  {f:<18}{standing.get(f, 'alike'):<24}{covers}" for f, covers in FACTORS.items()]
        none = [(p, arm) for p in self.probes for arm, request in p.requests.items() if request is None]
        lines += [f"  no request of {arm} on {p.suite}/{p.task}: only its settings are compared" for p, arm in none]
        first = {difference.label: difference for difference in reversed(self.differences)}
        for difference in reversed(first.values()):
            probe = difference.probe
            lines += ["", difference.label, f"  on {probe.suite}/{probe.task} ({probe.model})"]
            lines += [f"  {line}" for line in difference.diffs()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As `contract.json` keeps it: each value once, by its hash."""
        values = {digest(v)[:16]: v for p in self.probes for have in p.arms.values() for v in have.values()}
        hashes = [
            {arm: {f: digest(v)[:16] for f, v in have.items()} for arm, have in p.arms.items()} for p in self.probes
        ]
        return {
            "schema": 1,
            "study": self.study,
            "differs": None if self.differs is None else list(self.differs),
            "differing": list(dict.fromkeys(d.factor for d in self.differences)),
            "probes": [{**vars(p), "arms": arms} for p, arms in zip(self.probes, hashes, strict=True)],
            "values": values,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FairnessCheck:
        """A fairness check as `to_dict` made it.  Raises `StudyError` for anything else."""
        try:
            values: Mapping[str, Any] = data["values"]
            probes: list[Probe] = []
            for p in data["probes"]:
                arms = {arm: {f: values[name] for f, name in have.items()} for arm, have in p["arms"].items()}
                probes.append(Probe(p["model"], current_suite(p["suite"]), p["task"], arms, p["requests"]))
            return cls(data["study"], None if data["differs"] is None else tuple(data["differs"]), tuple(probes))
        except (KeyError, TypeError, AttributeError) as error:
            raise StudyError(f"contract.json is damaged ({error!r}); remove it, the next run makes it anew") from error


class Unfair(StudyError):
    """The arms of a study differ in something that was not declared.

    The message is one line; `diff` is the whole comparison as text, `fairness_check` the comparison itself.
    """

    def __init__(self, found: FairnessCheck) -> None:
        names = list(dict.fromkeys(d.factor for d in found.undeclared))
        arms = " and ".join("/".join(group) for group, _ in found.undeclared[0].groups[:2])
        declare = ", ".join(f'"{n}"' for n in names)
        super().__init__(
            f"study {found.study!r} is not fair: {arms} differ in {', '.join(names)}; make them alike, or declare it: "
            f"differs=({declare},)"
        )
        self.fairness_check = found
        self.diff = str(found)
        self.add_note(self.diff)


def fairness_check(study: Any, *, limit: int | None = None, agents: Agents | None = None) -> FairnessCheck:
    """Compare the first requests of the arms of a `Study`; no model is called, and no REPL started.

    One task of each suite (among the first `limit` tasks) and one seed are looked at, for each model.  Raises
    `StudyError` where a study that declares `differs` has a request that cannot be made.
    """
    firsts = dict(reversed(in_turn(study.suites, limit)))
    every = study.agents() if agents is None else agents
    by_model = {model: arms for (model, seed), arms in every.items() if seed == study.seeds[0]}
    probes = [
        _probe(study, model, arms, suite, task)
        for model, arms in by_model.items()
        for suite, task in reversed(firsts.items())
    ]
    return FairnessCheck(study.name, None if study.differs is None else tuple(study.differs), tuple(probes))


def _probe(study: Any, model: str, arms: Mapping[str, StudyAgent], suite: str, task: Task) -> Probe:
    have: dict[str, Mapping[str, Any]] = {}
    requests: dict[str, str | None] = {}
    with suppress(Exception):  # where it cannot be made, each arm says so below
        task = replace(task, context=task.material())  # a long text is made once for all arms
    for arm, agent in arms.items():
        begun = None
        if first_request := getattr(agent, "first_request", None):  # of an agent of this package
            try:
                begun = first_request(task)
            except Exception as error:
                if study.differs is not None:
                    why = " ".join(f"{type(error).__name__}: {error}".split())
                    raise StudyError(
                        f"the first request of {arm} on {suite}/{task.id} cannot be made: {why}"
                    ) from error
        have[arm] = factors_of(agent, begun)
        requests[arm] = None if begun is None else begun.prompt.digest[:16]
    return Probe(model, suite, task.id, have, requests)


def declared_factors(differs: Sequence[str] | None, study: str) -> tuple[str, ...] | None:
    """Return what a study declares.  Raises `StudyError` for a name that is no factor."""
    if differs is None:
        return None
    names = (differs,) if isinstance(differs, str) else tuple(differs)
    if unknown := [n for n in names if n not in FACTORS]:
        raise StudyError(f"study {study!r}: differs has {unknown[0]!r}; there are {', '.join(FACTORS)}")
    return names


def _difference(probe: Probe, factor: str) -> ArmDifference:
    groups: dict[str, list[str]] = {}
    for arm, have in probe.arms.items():
        groups.setdefault(digest(have.get(factor)), []).append(arm)
    return ArmDifference(factor, probe, tuple((tuple(of), probe.arms[of[0]].get(factor)) for of in groups.values()))


def factors_of(agent: StudyAgent, request: FirstRequest | None) -> dict[str, Any]:
    """Return what an arm has of each factor, as JSON.  Of a foreign agent only the settings are known: `other`."""
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
    found["tools"]["schemas"] = [[n, json.dumps(dict(t.schema))] for n, t in tools.items() if n not in PROTOCOL]
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
