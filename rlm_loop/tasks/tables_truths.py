"""The functions that compute what is right in the suite `tables`: plain Python over rows of text, without pandas."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import fsum
from statistics import median
from typing import Any

from rlm_loop.tasks.tables_data import Row, Tables


class Tie(ValueError):
    """A question has two right answers with these files."""


def top(scores: Mapping[str, float]) -> str:
    """The key with the greatest value; a `Tie` if another comes too near to tell apart after rounding."""
    ranked = sorted(scores, key=lambda key: scores[key], reverse=True)
    if len(ranked) > 1 and scores[ranked[0]] - scores[ranked[1]] < 1e-6:
        raise Tie(f"{ranked[0]} and {ranked[1]}")
    return ranked[0]


def count(rows: Iterable[Row], condition: Callable[[Row], bool]) -> int:
    return sum(1 for row in rows if condition(row))


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return round(fsum(known) / len(known), 2)


def numbers(rows: Iterable[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows if row[column]]


def amount(row: Row) -> float:
    return int(row["quantity"]) * float(row["unit_price"])


def groups(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return dict(found)


def customer_of(tables: Tables) -> dict[str, Row]:
    return {row["customer_id"]: row for row in tables["customers"]}


def joined(tables: Tables) -> list[Row]:
    """The orders with the columns of their customers."""
    customers = customer_of(tables)
    return [{**customers[row["customer_id"]], **row} for row in tables["orders"]]


def busiest_month(tables: Tables) -> str:
    return top(Counter(row["date"][:7] for row in tables["orders"]))


def weekend_orders(tables: Tables) -> int:
    return count(tables["orders"], lambda r: date.fromisoformat(r["date"]).weekday() > 4)


def copies(rows: Sequence[Row]) -> int:
    return len(rows) - len({tuple(row.values()) for row in rows})


def per_customer(tables: Tables, measure: Callable[[list[Row]], float], least: float) -> int:
    return sum(1 for rows in groups(tables["orders"], "customer_id").values() if measure(rows) >= least)


def without_orders(tables: Tables) -> int:
    ordering = {row["customer_id"] for row in tables["orders"]}
    return count(tables["customers"], lambda r: r["customer_id"] not in ordering)


def revenue_by(tables: Tables, column: str, status: str) -> dict[str, float]:
    rows = [row for row in joined(tables) if row["status"] == status]
    return {key: fsum(map(amount, found)) for key, found in groups(rows, column).items()}


def soon_orders(tables: Tables, days: int) -> int:
    """Orders at most so many days after the customer joined, and not before."""

    def since(row: Row) -> timedelta:
        return date.fromisoformat(row["date"]) - date.fromisoformat(row["joined"])

    return count(joined(tables), lambda r: timedelta(0) <= since(r) <= timedelta(days))


def longest_gap(tables: Tables) -> int:
    gaps = [0]
    for rows in groups(tables["orders"], "customer_id").values():
        days = sorted(date.fromisoformat(row["date"]) for row in rows)
        gaps += [(b - a).days for a, b in pairwise(days)]
    return max(gaps)


def hottest_day(tables: Tables) -> str:
    days = {day: numbers(rows, "temperature") for day, rows in groups(_with_day(tables), "day").items()}
    return top({day: fsum(values) / len(values) for day, values in days.items()})


def daily_spread(tables: Tables, sensor: str) -> float:
    """The largest difference between the highest and lowest temperature of one day."""
    days = groups([row for row in _with_day(tables) if row["sensor"] == sensor], "day").values()
    return round(max(max(v) - min(v) for v in (numbers(rows, "temperature") for rows in days) if v), 1)


def _with_day(tables: Tables) -> list[Row]:
    return [{**row, "day": row["time"][:10]} for row in tables["readings"]]


def median_price(tables: Tables, status: str) -> float:
    return round(median(float(r["unit_price"]) for r in tables["orders"] if r["status"] == status), 2)


#: What is right, by the name of the question.
TRUTHS: Mapping[str, Callable[[Tables], Any]] = {
    "returned": lambda t: count(t["orders"], lambda r: r["status"] == "returned"),
    "city": lambda t: count(t["customers"], lambda r: r["city"] == "Lisbon"),
    "warmest": lambda t: max(numbers(groups(t["readings"], "sensor")["A2"], "temperature")),
    "best-paid": lambda t: int(max(numbers(groups(t["staff"], "department")["support"], "salary"))),
    "large-delivered": lambda t: count(t["orders"], lambda r: r["status"] == "delivered" and int(r["quantity"]) >= 8),
    "early-business": lambda t: count(t["customers"], lambda r: r["segment"] == "business" and r["joined"] < "2021"),
    "warm-humid": lambda t: count(
        t["readings"],
        lambda r: (
            bool(r["temperature"] and r["humidity"]) and float(r["temperature"]) > 20 and int(r["humidity"]) <= 50
        ),
    ),
    "salary-band": lambda t: count(
        t["staff"], lambda r: r["department"] in ("sales", "legal") and 40000 <= int(r["salary"]) <= 60000
    ),
    "most-sold": lambda t: top({k: sum(numbers(v, "quantity")) for k, v in groups(t["orders"], "product").items()}),
    "most-humid": lambda t: top(
        {k: sum(n) / len(n) for k, v in groups(t["readings"], "sensor").items() if (n := numbers(v, "humidity"))}
    ),
    "revenue": lambda t: round(fsum(amount(r) for r in t["orders"] if r["status"] == "delivered"), 2),
    "mean-salary": lambda t: mean(
        float(r["salary"]) for r in t["staff"] if r["department"] == "engineering" and r["hired"] > "2015-12-31"
    ),
    "regulars": lambda t: per_customer(t, len, 8),
    "median-price": lambda t: median_price(t, "returned"),
    "any-missing": lambda t: count(t["readings"], lambda r: not (r["temperature"] and r["humidity"])),
    "one-missing": lambda t: count(
        t["readings"], lambda r: r["sensor"] == "B1" and bool(r["humidity"]) and not r["temperature"]
    ),
    "copies": lambda t: copies(t["staff"]),
    "different-emails": lambda t: len({r["email"].lower() for r in t["staff"]}),
    "weekend": weekend_orders,
    "first-quarter": lambda t: count(t["staff"], lambda r: r["hired"][5:7] in ("01", "02", "03")),
    "busiest-month": busiest_month,
    "at-two": lambda t: mean(numbers([r for r in t["readings"] if r["time"].endswith("14:00")], "temperature")),
    "first-names": lambda t: count(t["customers"], lambda r: r["name"].split()[0].endswith("a")),
    "domain": lambda t: top(Counter(r["email"].split("@")[1].lower() for r in t["staff"])),
    "orders-from-city": lambda t: count(joined(t), lambda r: r["city"] == "Oslo"),
    "no-orders": without_orders,
    "city-revenue": lambda t: top(revenue_by(t, "city", "delivered")),
    "segment-revenue": lambda t: round(revenue_by(t, "segment", "pending")["business"], 2),
    "hottest-day": hottest_day,
    "daily-spread": lambda t: daily_spread(t, "A1"),
    "new-customers": lambda t: soon_orders(t, 90),
    "longest-gap": longest_gap,
}
