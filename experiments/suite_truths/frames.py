"""The functions that compute what is right in the suite `frames`: plain Python over rows, without pandas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import pairwise
from math import fsum
from statistics import median
from typing import Any

from experiments.suite_truths.rows import (
    at_least,
    count,
    each,
    groups,
    having,
    known,
    mean,
    once,
    percent,
    ranked,
    span,
    top,
    where,
)
from experiments.suite_truths.tables import Row, Rows


def amount(row: Row) -> float:
    return row["units"] * row["unit_price"]


def value(row: Row) -> float:
    return row["quantity"] * row["unit_cost"]


def valid(rows: Rows) -> list[Row]:
    """The orders that count."""
    return [row for row in rows if row["status"] != "void"]


def flown(rows: Rows) -> list[Row]:
    return [row for row in rows if row["status"] != "cancelled"]


def day(moment: datetime) -> str:
    return moment.date().isoformat()


def minutes(row: Row) -> float:
    return (row["end"] - row["start"]).total_seconds() / 60


def by_student(rows: Rows, subject: str) -> list[dict[str, Any]]:
    """For each student the points by exam."""
    return [{r["exam"]: r["points"] for r in own} for own in groups(where(rows, subject=subject), "student").values()]


def longest_gap(rows: Rows) -> int:
    days = (sorted(row["placed"] for row in own) for own in groups(valid(rows), "customer").values())
    return max((b - a).days for own in days for a, b in pairwise(own))


def late_share(rows: list[Row]) -> float:
    return sum(row["delay"] > 15 for row in rows) / len(rows)


def managers(rows: Rows) -> list[tuple[Row, Row]]:
    """Each person who has a manager, with this manager."""
    people = {row["number"]: row for row in rows}
    return [(row, people[row["manager"]]) for row in having(rows, "manager")]


def latest_plan(rows: Rows) -> list[str]:
    """The plan of each address's latest row."""
    own = groups(rows, lambda row: row["email"].lower()).values()
    return [max(found, key=lambda row: row["joined"])["plan"] for found in own]


def filled_mean(rows: Rows, station: str) -> float:
    """The mean temperature when a missing one is taken to be the last one known before."""
    values: list[float] = []
    for row in sorted(where(rows, station=station), key=lambda row: row["time"]):
        values += [row["temperature"]] if row["temperature"] is not None else values[-1:]
    return mean(values)


def warm_days(rows: Rows) -> int:
    days = groups(having(where(rows, quality="ok"), "temperature"), lambda row: day(row["time"])).values()
    return sum(len({row["station"] for row in own if row["temperature"] >= 18}) == 5 for own in days)


def carried(rows: Rows) -> int:
    """Bikes of which a finished trip began elsewhere than the finished trip before ended."""
    moved = 0
    for own in groups(having(rows, "end"), "bike").values():
        own.sort(key=lambda row: row["start"])
        moved += any(b["from_station"] != a["to_station"] for a, b in pairwise(own))
    return moved


def longest_wait(rows: Rows, bike: str) -> float:
    own = sorted(having(where(rows, bike=bike), "end"), key=lambda row: row["start"])
    return max((b["start"] - a["end"]).total_seconds() / 60 for a, b in pairwise(own))


def all_passed(rows: Rows) -> int:
    finals = groups(where(rows, exam="final"), "student").values()
    return count(finals, lambda own: all((row["points"] or 0) >= 50 for row in own))


def to_reorder(rows: Rows) -> int:
    own = groups(where(rows, discontinued=False), "sku").values()
    return sum(sum(r["quantity"] for r in found) < sum(r["reorder_at"] for r in found) for found in own)


def there_at(rows: Rows, when: str) -> int:
    return count(
        once(rows),
        lambda r: r["plan"] == "pro" and r["joined"] <= when and (r["left"] is None or r["left"] > when),
    )


#: What is right, by the name of the question.
TRUTHS: Mapping[str, Callable[[Rows], Any]] = {
    "void": lambda t: count(t, lambda r: r["status"] == "void"),
    "diverted": lambda t: count(t, lambda r: r["status"] == "diverted"),
    "pro-rows": lambda t: count(t, lambda r: r["plan"] == "pro"),
    "finance": lambda t: count(t, lambda r: r["department"] == "finance"),
    "warmest": lambda t: max(known(where(t, station="Lake"), "temperature")),
    "guest-fare": lambda t: max(known(where(t, rider="guest"), "fare")),
    "graz-most": lambda t: max(r["quantity"] for r in where(t, warehouse="Graz")),
    "support-least": lambda t: min(r["salary"] for r in where(t, department="support")),
    "by-phone": lambda t: len({r["customer"] for r in where(t, channel="phone")}),
    "from-park": lambda t: len({r["bike"] for r in where(t, from_station="Park") if day(r["start"]) == "2024-06-05"}),
    "good-physics": lambda t: count(having(where(t, subject="Physics"), "points"), lambda r: r["points"] >= 80),
    "many-chairs": lambda t: count(t, lambda r: r["product"] == "chair" and r["units"] >= 6),
    "guests-harbour": lambda t: len(where(t, rider="guest", from_station="Harbour")),
    "french-basic": lambda t: len(where(t, country="FR", plan="basic")),
    "engineers": lambda t: count(t, lambda r: r["department"] == "engineering" and r["salary"] > 60000),
    "kite-late": lambda t: count(having(where(t, airline="Kite"), "delay"), lambda r: r["delay"] > 30),
    "small-flights": lambda t: count(flown(t), lambda r: r["passengers"] < 60),
    "discontinued": lambda t: count(t, lambda r: r["discontinued"] and r["quantity"] > 0),
    "old-free": lambda t: count(having(t, "age"), lambda r: r["age"] > 60 and r["plan"] == "free"),
    "humid-hill": lambda t: count(having(where(t, station="Hill"), "humidity"), lambda r: r["humidity"] >= 85),
    "suspect-port": lambda t: len(where(t, station="Port", quality="suspect")),
    "poor-finals": lambda t: count(
        having(where(t, subject="History", exam="final"), "points"), lambda r: r["points"] < 40
    ),
    "bergen-out": lambda t: count(
        t, lambda r: r["warehouse"] == "Bergen" and r["category"] == "paint" and not r["quantity"]
    ),
    "maths-8a": lambda t: count(
        where(t, **{"class": "8a"}, subject="Maths", exam="midterm"), lambda r: r["points"] is None
    ),
    "chairs": lambda t: sum(r["units"] for r in where(valid(t), product="chair")),
    "graz-worth": lambda t: fsum(value(r) for r in where(t, warehouse="Graz", discontinued=False)),
    "busiest-stop": lambda t: top(Counter(r["from_station"] for r in t)),
    "most-carried": lambda t: top(each(groups(flown(t), "airline"), lambda own: sum(r["passengers"] for r in own))),
    "maths-mean": lambda t: mean(known(where(t, subject="Maths", exam="final"), "points")),
    "sales-mean": lambda t: mean(r["salary"] for r in where(t, department="sales") if r["hired"].year >= 2015),
    "regulars": lambda t: at_least(10, Counter(r["customer"] for r in valid(t)).values()),
    "busy-bikes": lambda t: at_least(30, Counter(r["bike"] for r in t).values()),
    "nordan-median": lambda t: median(known(where(t, airline="Nordan", status="landed"), "delay")),
    "physics-median": lambda t: median(known(where(t, subject="Physics", exam="midterm"), "points")),
    "any-missing": lambda t: count(t, lambda r: r["temperature"] is None or r["humidity"] is None),
    "no-supplier": lambda t: len({r["sku"] for r in t if r["supplier"] is None}),
    "unfinished": lambda t: count(where(t, rider="member"), lambda r: r["end"] is None),
    "no-bonus": lambda t: count(where(t, department="legal"), lambda r: not r["bonus"]),
    "busiest-month": lambda t: top(Counter(r["placed"].strftime("%Y-%m") for r in t)),
    "flight-weekday": lambda t: top(Counter(r["departure"].strftime("%A") for r in t)),
    "first-quarter": lambda t: count(t, lambda r: r["hired"].month <= 3),
    "weekend": lambda t: count(t, lambda r: r["placed"].weekday() > 4),
    "joined-2022": lambda t: count(t, lambda r: r["joined"][:4] == "2022" and r["left"] is None),
    "noon": lambda t: mean(
        known((r for r in where(t, station="Lake", quality="ok") if r["time"].hour == 12), "temperature")
    ),
    "copies": lambda t: len(t) - len(once(t)),
    "people": lambda t: len({r["email"].lower() for r in t}),
    "largest-stock": lambda t: ranked(each(groups(t, "sku"), lambda own: sum(r["quantity"] for r in own)), 3),
    "best-paid": lambda t: ranked({r["name"]: r["salary"] for r in where(t, department="sales")}, 3),
    "cancelled": lambda t: percent(len(t) - len(flown(t)), len(t)),
    "round-trips": lambda t: percent(sum(r["from_station"] == r["to_station"] for r in t), len(having(t, "end"))),
    "best-class": lambda t: top(
        each(groups(where(t, subject="Music", exam="final"), "class"), lambda own: mean(known(own, "points")))
    ),
    "least-trusted": lambda t: top(Counter(r["station"] for r in where(t, quality="suspect"))),
    "best-customer": lambda t: top(
        each(
            groups((r for r in valid(t) if r["placed"].year == 2024 and r["placed"].month <= 6), "customer"),
            lambda own: fsum(map(amount, own)),
        )
    ),
    "late-origin": lambda t: top(each(groups(flown(t), "origin"), late_share)),
    "over-manager": lambda t: sum(own["salary"] > above["salary"] for own, above in managers(t)),
    "improved": lambda t: sum(
        own["final"] > own["midterm"] for own in by_student(t, "Maths") if None not in own.values()
    ),
    "widest-day": lambda t: top(
        each(
            groups(having(where(t, station="Hill", quality="ok"), "temperature"), lambda r: day(r["time"])),
            lambda own: span(known(own, "temperature")),
        )
    ),
    "busiest-day": lambda t: top(
        each(groups(having(t, "end"), lambda r: day(r["start"])), lambda own: fsum(map(minutes, own)))
    ),
    "good-students": lambda t: at_least(60, (mean(known(own, "points")) for own in groups(t, "student").values())),
    "reorder": to_reorder,
    "old-counts": lambda t: top(
        each(
            groups((r for r in t if r["counted"] < datetime(2024, 3, 1)), "category"), lambda own: fsum(map(value, own))
        )
    ),
    "best-channel": lambda t: top(
        each(groups((r for r in valid(t) if r["units"] >= 5), "channel"), lambda own: mean(map(amount, own)))
    ),
    "pro-in-2022": lambda t: there_at(t, "2022-12-31"),
    "latest-plan": lambda t: latest_plan(t).count("free"),
    "longest-gap": longest_gap,
    "longest-wait": lambda t: round(longest_wait(t, "B07")),
    "bad-days": lambda t: at_least(2, Counter(day(r["departure"]) for r in where(t, status="cancelled")).values()),
    "warm-days": warm_days,
    "void-share": lambda t: top(each(groups(t, "product"), lambda own: len(where(own, status="void")) / len(own))),
    "slow-stop": lambda t: top(
        each(groups(having(where(t, rider="guest"), "end"), "from_station"), lambda own: mean(map(minutes, own)))
    ),
    "largest-team": lambda t: top(Counter(above["name"] for _, above in managers(t))),
    "other-department": lambda t: mean(
        own["salary"] for own, above in managers(t) if own["department"] != above["department"]
    ),
    "filled": lambda t: filled_mean(t, "Port"),
    "absent-zero": lambda t: top(each(groups(t, "class"), lambda own: mean(r["points"] or 0 for r in own))),
    "all-passed": all_passed,
    "carried": carried,
    "sol-seats": lambda t: (lambda own: percent(sum(r["passengers"] for r in own), sum(r["seats"] for r in own)))(
        [r for r in where(flown(t), airline="Sol") if r["departure"].month == 3]
    ),
    "porto-share": lambda t: percent(fsum(value(r) for r in where(t, warehouse="Porto")), fsum(map(value, t))),
    "left-country": lambda t: top(each(groups(once(t), "country"), lambda own: len(known(own, "left")) / len(own))),
    "late-cities": lambda t: ranked(
        each(groups(where(t, status="landed"), "destination"), lambda own: mean(known(own, "delay"))), 3
    ),
}
