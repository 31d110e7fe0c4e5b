"""A fairness check as a value: what each arm of a study has of each factor, task by task, and in what they differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from rlm_loop.messages import digest
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.factors import FACTORS
from rlm_loop.tasks.base import current_suite

SCHEMA = 1
#: Of these only what both arms have is compared; that one has more is a difference in `tools`.
_SHARED = ("tool_order", "tool_schema")
#: Lines of one diff that are shown.
_MOST = 40

#: How arms stand to each other in a factor.
Standing = Literal["alike", "alike, though declared", "differs", "declared", "UNDECLARED"]


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
class ArmDifference:
    """A factor in which arms differ, on one task: groups of arms that are alike, the first arm's first."""

    factor: str
    probe: Probe
    groups: tuple[tuple[tuple[str, ...], Any], ...]


@dataclass(frozen=True)
class ShownDifference:
    """A factor in which arms fall into `groups`: on `probe`, the first task where they do, and alike on `more` others.

    `diff` has the lines of a unified diff of each other group's value from the first group's; a long one is cut.
    """

    factor: str
    groups: tuple[tuple[str, ...], ...]
    probe: Probe
    more: int
    diff: tuple[str, ...]

    @property
    def label(self) -> str:
        """The factor and the groups of arms."""
        return f"{self.factor}: {' | '.join(', '.join(group) for group in self.groups)}"

    @property
    def where(self) -> str:
        """On which task, and on how many more."""
        more = f", and alike on {self.more} more" if self.more else ""
        return f"on {self.probe.suite}/{self.probe.task} ({self.probe.model}){more}"


@dataclass(frozen=True)
class FairnessCheck:
    """What was compared, what differs, and what was declared (`None`: nothing was said, so nothing is forbidden)."""

    study: str
    differs: tuple[str, ...] | None
    probes: tuple[Probe, ...]

    @property
    def differences(self) -> tuple[ArmDifference, ...]:
        """Every factor in which arms differ, task by task, in the order of `FACTORS`."""
        found = [d for probe in self.probes for factor in FACTORS if (d := _difference(probe, factor)) is not None]
        return tuple(sorted(found, key=lambda d: list(FACTORS).index(d.factor)))

    @property
    def undeclared(self) -> tuple[ArmDifference, ...]:
        """The differences in factors that are not in `differs`; all of them where nothing was declared."""
        return tuple(d for d in self.differences if d.factor not in (self.differs or ()))

    @property
    def fair(self) -> bool:
        """Whether nothing differs but what was declared; true for a study that declares nothing."""
        return self.differs is None or not self.undeclared

    @property
    def factors(self) -> dict[str, Standing]:
        """How the arms stand to each other in each factor, in the order of `FACTORS`."""
        there = {d.factor for d in self.differences}
        return {f: self._standing(f, f in there) for f in FACTORS}

    def _standing(self, factor: str, differs: bool) -> Standing:
        declared = factor in (self.differs or ())
        if not differs:
            return "alike, though declared" if declared else "alike"
        return "differs" if self.differs is None else "declared" if declared else "UNDECLARED"

    @property
    def without_request(self) -> list[tuple[str, Probe, str]]:
        """The arms of which a first request could not be made: arm, task and reason."""
        other = "it is not an agent of this package, only its settings are compared"
        return [(arm, p, p.failed.get(arm, other)) for p in self.probes for arm, r in p.requests.items() if r is None]

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
                    current_suite(p["suite"]),
                    p["task"],
                    {arm: {f: values[name] for f, name in have.items()} for arm, have in p["arms"].items()},
                    p["requests"],
                    p.get("failed", {}),
                )
                for p in data["probes"]
            )
            differs = None if data["differs"] is None else tuple(data["differs"])
            return cls(data["study"], differs, probes)
        except (KeyError, TypeError, AttributeError) as error:
            raise StudyError(
                f"contract.json cannot be read ({error!r}); remove it, the next run makes it anew"
            ) from error


def _difference(probe: Probe, factor: str) -> ArmDifference | None:
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
    return ArmDifference(factor, probe, tuple((tuple(arms), values[arms[0]]) for arms in groups.values()))


def _only(value: Any, names: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {k: v for k, v in cast("Mapping[str, Any]", value).items() if k in names}
    return [v for v in value or () if v in names]


def _kept(value: Any, values: dict[str, Any]) -> str:
    name = digest(value)[:16]
    values[name] = value
    return name


def headline(study: str, undeclared: Sequence[ArmDifference]) -> str:
    """One line: what differs without being declared, and what to do."""
    names = list(dict.fromkeys(d.factor for d in undeclared))
    arms = " and ".join("/".join(group) for group, _ in undeclared[0].groups[:2]) if undeclared else ""
    declare = ", ".join(f'"{n}"' for n in names)
    what = f"study {study!r} is not fair: {arms} differ in {', '.join(names)}"
    return f"{what}; make them alike, or declare it: differs=({declare},)"


def report(found: FairnessCheck, shown: Sequence[ArmDifference]) -> str:
    """The whole check as text, with a diff for each of the differences in `shown`."""
    lines = [*_summary(found)]
    for one in shown_differences(shown):
        lines += ["", one.label, f"  {one.where}", *(f"  {line}" for line in one.diff)]
    return "\n".join(lines)


def _summary(found: FairnessCheck) -> Iterator[str]:
    arms = list(dict.fromkeys(arm for p in found.probes for arm in p.arms))
    count = len(found.probes)
    yield f"{found.study}: {len(arms)} arms ({', '.join(arms)}), compared on {count} first requests each"
    for factor, standing in found.factors.items():
        yield f"  {factor:<18}{standing:<24}{FACTORS[factor]}"
    for arm, probe, why in found.without_request:
        yield f"  no request of {arm} on {probe.suite}/{probe.task}: {why}"


def shown_differences(differences: Sequence[ArmDifference]) -> list[ShownDifference]:
    """Each way in which the arms fall apart in a factor once, with a diff of the first task on which they do."""
    alike: dict[tuple[str, tuple[tuple[str, ...], ...]], list[ArmDifference]] = {}
    for difference in differences:
        alike.setdefault((difference.factor, tuple(group for group, _ in difference.groups)), []).append(difference)
    return [
        ShownDifference(factor, groups, every[0].probe, len(every) - 1, tuple(_diffs(every[0])))
        for (factor, groups), every in alike.items()
    ]


def _diffs(difference: ArmDifference) -> Iterator[str]:
    (base, left), *others = difference.groups
    for group, right in others:
        lines = list(difflib.unified_diff(_lines(left), _lines(right), base[0], group[0], lineterm="", n=1))
        yield from lines[:_MOST]
        if len(lines) > _MOST:
            yield f"... {len(lines) - _MOST} more lines"


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
