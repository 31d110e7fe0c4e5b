"""Two arms on the same units, what is missing of them, and what is put in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rlm_loop.study import statistics
from rlm_loop.study.compare.pair_keys import PairKey, by_episode, is_resolved, pair_key
from rlm_loop.study.store.rows import Row, finished

Policy = Literal["worst", "bounds"]
POLICIES: tuple[Policy, ...] = ("worst", "bounds")
#: Below this many repositories (or families) no variance by cluster can be relied on.
FEWEST = 10


@dataclass(frozen=True)
class Pairs:
    """A measure of two arms: a value of each for every unit; `None` where an arm has none.

    Whether a task was resolved is missing where `pair_keys.is_resolved` does not know it; any other measure where the
    episode did not run to its end or did not report it.  0 is a value.  `clusters` names what the units are grouped
    by, in `grouped_by` ("repository", "family", "task", or a column).
    """

    here: Sequence[float | None]
    there: Sequence[float | None]
    clusters: Sequence[str]
    grouped_by: str
    too_few: int = 0

    def __len__(self) -> int:
        return len(self.here)

    @property
    def missing(self) -> int:
        return sum(h is None or t is None for h, t in zip(self.here, self.there, strict=True))

    def filled(self, here: float, there: float) -> Pairs:
        """The same with values in place of those that are missing."""
        found = [here if h is None else h for h in self.here]
        return replace(self, here=found, there=[there if t is None else t for t in self.there])

    def known(self) -> Pairs:
        """Only the pairs of which both values are known."""
        both = zip(self.here, self.there, strict=True)
        return self.at([i for i, (h, t) in enumerate(both) if h is not None and t is not None])

    def at(self, units: Sequence[int]) -> Pairs:
        """Only the pairs of these numbers."""
        here, there = ([of[i] for i in units] for of in (self.here, self.there))
        return replace(self, here=here, there=there, clusters=[self.clusters[i] for i in units], too_few=0)


class Paired:
    """The rows of a study by arm and unit, with the cluster of each unit: read once, and asked for pairs of arms.

    Pairs come in the order of `units`.  The row's own `cluster`, the task's repository or package, or its family is the
    cluster, as long as there are at least ten; else the task, so that the seeds of one task always count as one
    cluster.  Tasks of two suites are two tasks, also where they have the same id.  Raises `StudyError` where an episode
    has two rows.
    """

    def __init__(self, rows: Sequence[Row], units: Sequence[PairKey]) -> None:
        self._units, self._of_episode = units, by_episode(rows)
        by_unit = {of: row for (_, of), row in self._of_episode.items()}  # of any arm: the task is the same
        self._clusters = cluster_labels([by_unit[u] for u in units], units)

    def pairs(self, arm: str, baseline: str, measure: str) -> Pairs:
        """The pairs of two arms in one measure."""
        here, there = (
            [_value(self._of_episode.get((name, u)), measure) for u in self._units] for name in (arm, baseline)
        )
        return Pairs(here, there, *self._clusters)


def _value(row: Row | None, measure: str) -> float | None:
    if measure == "resolved":
        value = is_resolved(row)
    else:
        value = row.get(measure) if row is not None and finished(row) else None
    return None if value is None else float(value)


def rate_of(rows: Sequence[Row]) -> tuple[int, int, float, float]:
    """Of rows of one arm: how many are resolved, how many have a verdict, and the 95 % interval of the rate.

    What counts is `pair_keys.is_resolved`, and what belongs together is that of `cluster_labels`, so that tables,
    figures and comparisons say the same.
    """
    labels = cluster_labels(rows, [pair_key(r) for r in rows])[0]
    found = [(float(v), label) for r, label in zip(rows, labels, strict=True) if (v := is_resolved(r)) is not None]
    values = [v for v, _ in found]
    return round(sum(values)), len(values), *statistics.wilson_by_cluster(values, [label for _, label in found])


def cluster_labels(rows: Sequence[Mapping[str, Any]], units: Sequence[PairKey]) -> tuple[list[str], str, int]:
    """The cluster of each unit, what it is, and how many there were if there were too few of them to use."""
    tasks = ["/".join(u[1:3]) for u in units]
    for kind, names in (("cluster", ("cluster",)), ("repository", ("repo", "package")), ("family", ("family",))):
        found = [_named(row, names) for row in rows]
        suites = [f"{u[1]}/" if kind == "family" else "" for u in units]  # one family of two suites is two
        labels = [t if f is None else f"{s}{f}" for f, s, t in zip(found, suites, tasks, strict=True)]
        count = len(set(labels))
        if any(f is not None for f in found) and count < len(set(tasks)):
            return (labels, kind, 0) if count >= FEWEST else (tasks, "task", count)
    return tasks, "task", 0


def _named(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    places = (row, row.get("facts") or {})
    return next((place[n] for place in places for n in names if place.get(n) is not None), None)
