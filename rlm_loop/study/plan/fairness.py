"""A fairness check as a value: what each arm of a study has of each factor, task by task, and in what they differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rlm_loop.messages import digest
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.factors import FACTORS

SCHEMA = 1
#: Of these only what both arms have is compared; that one has more is a difference in `tools`.
_SHARED = ("tool_order", "tool_schema")
#: Lines of one diff that are shown.
_MOST = 40


@dataclass(frozen=True)
class Probe:
    """One task as all arms begin it: by arm what it has of each factor (JSON), and the hash of its first request.

    A request is `None` where the arm cannot make one without a model (an agent that is not ours), or where making it
    failed; `failed` then has the reason by arm.
    """

    model: str
    suite: str
    task: str
    arms: Mapping[str, Mapping[str, Any]]
    requests: Mapping[str, str | None]
    failed: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Difference:
    """A factor in which arms differ, on one task: groups of arms that are alike, the first arm's first."""

    factor: str
    probe: Probe
    groups: tuple[tuple[tuple[str, ...], Any], ...]


@dataclass(frozen=True)
class FairnessCheck:
    """What was compared, what differs, and what was declared (`None`: nothing was said, so nothing is forbidden).

    `changed` names requests that were others when the study was begun (it was resumed with other code).
    """

    study: str
    differs: tuple[str, ...] | None
    probes: tuple[Probe, ...]
    changed: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Every factor in which arms differ, task by task, in the order of `FACTORS`."""
        found = [d for probe in self.probes for factor in FACTORS if (d := _difference(probe, factor)) is not None]
        return tuple(sorted(found, key=lambda d: list(FACTORS).index(d.factor)))

    @property
    def undeclared(self) -> tuple[Difference, ...]:
        """The differences in factors that are not in `differs`; all of them where nothing was declared."""
        return tuple(d for d in self.differences if d.factor not in (self.differs or ()))

    @property
    def unused(self) -> tuple[str, ...]:
        """Declared factors in which no arm differs."""
        there = {d.factor for d in self.differences}
        return tuple(f for f in self.differs or () if f not in there)

    @property
    def fair(self) -> bool:
        """Whether nothing differs but what was declared; true for a study that declares nothing."""
        return self.differs is None or not self.undeclared

    def __str__(self) -> str:
        return report(self, self.differences)

    def to_dict(self) -> dict[str, Any]:
        """As `contract.json` keeps it: each value once, by its hash."""
        values: dict[str, Any] = {}
        probes: list[dict[str, Any]] = []
        for probe in self.probes:
            arms = {arm: {f: _kept(v, values) for f, v in have.items()} for arm, have in probe.arms.items()}
            where = {"model": probe.model, "suite": probe.suite, "task": probe.task}
            probes.append({**where, "arms": arms, "requests": dict(probe.requests), "failed": dict(probe.failed)})
        differs = None if self.differs is None else list(self.differs)
        return {
            "schema": SCHEMA,
            "study": self.study,
            "differs": differs,
            "differing": list(dict.fromkeys(d.factor for d in self.differences)),
            "changed": list(self.changed),
            "probes": probes,
            "values": values,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FairnessCheck:
        """A fairness check as `to_dict` made it.  Raises `StudyError` for anything else."""
        try:
            values: Mapping[str, Any] = data["values"]
            probes = tuple(
                Probe(
                    p["model"],
                    p["suite"],
                    p["task"],
                    {arm: {f: values[name] for f, name in have.items()} for arm, have in p["arms"].items()},
                    p["requests"],
                    p.get("failed", {}),
                )
                for p in data["probes"]
            )
            differs = None if data["differs"] is None else tuple(data["differs"])
            return cls(data["study"], differs, probes, tuple(data.get("changed", ())))
        except (KeyError, TypeError, AttributeError) as error:
            raise StudyError(
                f"contract.json cannot be read ({error!r}); remove it, the next run makes it anew"
            ) from error

    def since(self, earlier: FairnessCheck | None) -> FairnessCheck:
        """This check with a note of each request that was another one in an earlier check of the study."""
        if earlier is None:
            return self
        old = {(p.model, p.suite, p.task, a): r for p in earlier.probes for a, r in p.requests.items()}
        now = {(p.model, p.suite, p.task, a): r for p in self.probes for a, r in p.requests.items()}
        new = [
            f"{a} on {s}/{t} ({m})"
            for (m, s, t, a), r in now.items()
            if r is not None and old.get((m, s, t, a), r) != r
        ]
        return replace(self, changed=tuple(dict.fromkeys([*earlier.changed, *new])))


def _difference(probe: Probe, factor: str) -> Difference | None:
    values = {arm: have.get(factor) for arm, have in probe.arms.items()}
    if factor in _SHARED:
        having: list[set[str]] = [set(v or ()) for v in values.values()]
        common = set[str]().union(*having).intersection(*having)
        values = {arm: _only(v, common) for arm, v in values.items()}
    groups: dict[str, list[str]] = {}
    for arm, value in values.items():
        groups.setdefault(digest(value), []).append(arm)
    if len(groups) < 2:
        return None
    return Difference(factor, probe, tuple((tuple(arms), values[arms[0]]) for arms in groups.values()))


def _only(value: Any, names: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {k: v for k, v in cast("Mapping[str, Any]", value).items() if k in names}
    return [v for v in value or () if v in names]


def _kept(value: Any, values: dict[str, Any]) -> str:
    name = digest(value)[:16]
    values[name] = value
    return name


def headline(study: str, undeclared: Sequence[Difference]) -> str:
    """One line: what differs without being declared, and what to do."""
    names = list(dict.fromkeys(d.factor for d in undeclared))
    arms = " and ".join("/".join(group) for group, _ in undeclared[0].groups[:2]) if undeclared else ""
    declare = ", ".join(f'"{n}"' for n in names)
    what = f"study {study!r} is not fair: {arms} differ in {', '.join(names)}"
    return f"{what}; make them alike, or declare it: differs=({declare},)"


def report(found: FairnessCheck, shown: Sequence[Difference]) -> str:
    """The whole check as text, with a diff for each of the differences in `shown`."""
    return "\n".join([*_summary(found), *_details(shown)])


def _summary(found: FairnessCheck) -> Iterator[str]:
    arms = list(dict.fromkeys(arm for p in found.probes for arm in p.arms))
    count = len(found.probes)
    yield f"{found.study}: {len(arms)} arms ({', '.join(arms)}), compared on {count} first requests each"
    differing = {d.factor for d in found.differences}
    for factor, covers in FACTORS.items():
        if factor in differing:
            free = found.differs is None
            word = "differs" if free else "declared" if factor in (found.differs or ()) else "UNDECLARED"
        else:
            word = "alike, though declared" if factor in found.unused else "alike"
        yield f"  {factor:<18}{word:<24}{covers}"
    for probe in found.probes:
        for arm, request in probe.requests.items():
            if request is None:
                why = probe.failed.get(arm, "it is not an agent of ours, only its settings are compared")
                yield f"  no request of {arm} on {probe.suite}/{probe.task}: {why}"
    for changed in found.changed:
        yield f"  begun with another request: {changed}"


def _details(shown: Sequence[Difference]) -> Iterator[str]:
    """A diff for each factor, of the first task on which the arms fall apart in this way."""
    seen: dict[tuple[str, tuple[tuple[str, ...], ...]], int] = {}
    first: list[Difference] = []
    for difference in shown:
        key = difference.factor, tuple(group for group, _ in difference.groups)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 1:
            first.append(difference)
    for difference in first:
        groups = [group for group, _ in difference.groups]
        more = seen[difference.factor, tuple(groups)] - 1
        probe = difference.probe
        yield ""
        yield f"{difference.factor}: {' | '.join(', '.join(group) for group in groups)}"
        yield f"  on {probe.suite}/{probe.task} ({probe.model}){f', and alike on {more} more' if more else ''}"
        (base, left), *others = difference.groups
        for group, right in others:
            yield from _diff(left, right, base[0], group[0])


def _diff(left: Any, right: Any, one: str, other: str) -> Iterator[str]:
    lines = list(difflib.unified_diff(_lines(left), _lines(right), one, other, lineterm="", n=1))
    yield from (f"  {line}" for line in lines[:_MOST])
    if len(lines) > _MOST:
        yield f"  ... {len(lines) - _MOST} more lines"


def _lines(value: Any, name: str = "") -> list[str]:
    """A value as lines: a field each, texts in lines of their own."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return [line for k, v in fields.items() for line in _lines(v, f"{name}.{k}" if name else str(k))]
    head = f"{name}: " if name else ""
    if isinstance(value, str) and "\n" in value:
        return [f"{name}:", *(f"  {line}" for line in value.split("\n"))]
    if isinstance(value, list) and any(isinstance(v, (dict, list)) for v in cast("list[Any]", value)):
        items = enumerate(cast("list[Any]", value))
        return [line for i, v in items for line in _lines(v, f"{name}[{i}]")]
    return [head + (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]
