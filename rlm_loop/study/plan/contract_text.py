"""A contract in words: which factors are alike, which differ, and the difference itself as a diff."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from rlm_loop.study.plan.contract_value import Contract, Difference
from rlm_loop.study.plan.factors import FACTORS

#: Lines of one diff that are shown.
_MOST = 40


def headline(study: str, undeclared: Sequence[Difference]) -> str:
    """One line: what differs without being declared, and what to do."""
    names = list(dict.fromkeys(d.factor for d in undeclared))
    arms = " and ".join("/".join(group) for group, _ in undeclared[0].groups[:2]) if undeclared else ""
    declare = ", ".join(f'"{n}"' for n in names)
    what = f"study {study!r} is not fair: {arms} differ in {', '.join(names)}"
    return f"{what}; make them alike, or declare it: differs=({declare},)"


def report(contract: Contract, shown: Sequence[Difference]) -> str:
    """The whole contract as text, with a diff for each of the differences in `shown`."""
    return "\n".join([*_summary(contract), *_details(shown)])


def _summary(contract: Contract) -> Iterator[str]:
    arms = list(dict.fromkeys(arm for p in contract.probes for arm in p.arms))
    count = len(contract.probes)
    yield f"{contract.study}: {len(arms)} arms ({', '.join(arms)}), compared on {count} first requests each"
    differing = {d.factor for d in contract.differences}
    for factor, covers in FACTORS.items():
        if factor in differing:
            free = contract.differs is None
            word = "differs" if free else "declared" if factor in (contract.differs or ()) else "UNDECLARED"
        else:
            word = "alike, though declared" if factor in contract.unused else "alike"
        yield f"  {factor:<18}{word:<24}{covers}"
    for probe in contract.probes:
        for arm, request in probe.requests.items():
            if request is None:
                why = probe.failed.get(arm, "it is not an agent of ours, only its settings are compared")
                yield f"  no request of {arm} on {probe.suite}/{probe.task}: {why}"
    for changed in contract.changed:
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
