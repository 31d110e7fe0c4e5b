"""The functions that compute what is right in the suite `tables`: plain Python over rows, without pandas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from itertools import pairwise
from math import fsum
from statistics import median
from typing import Any

from experiments.suite_truths.rows import at_least, count, each, groups, having, known, mean, once, span, top, where
from experiments.suite_truths.tables import Row
from experiments.tables_suite.data import Tables


def amount(row: Row) -> float:
    return row["quantity"] * row["unit_price"]


def joined(tables: Tables) -> list[Row]:
    """The orders with the columns of their customers."""
    customers = {row["customer_id"]: row for row in tables["customers"]}
    return [{**customers[row["customer_id"]], **row} for row in tables["orders"]]


def without_orders(tables: Tables) -> int:
    ordering = {row["customer_id"] for row in tables["orders"]}
    return count(tables["customers"], lambda r: r["customer_id"] not in ordering)


def revenue_by(tables: Tables, column: str, status: str) -> dict[str, float]:
    return each(groups(where(joined(tables), status=status), column), lambda own: fsum(map(amount, own)))


def soon_orders(tables: Tables, days: int) -> int:
    """Orders at most so many days after the customer joined, and not before."""

    def since(row: Row) -> int:
        return (date.fromisoformat(row["date"]) - date.fromisoformat(row["joined"])).days

    return count(joined(tables), lambda r: 0 <= since(r) <= days)


def longest_gap(tables: Tables) -> int:
    own = groups(tables["orders"], "customer_id").values()
    days = (sorted(date.fromisoformat(row["date"]) for row in rows) for rows in own)
    return max((b - a).days for found in days for a, b in pairwise(found))


def temperatures(tables: Tables, **wanted: str) -> dict[str, list[float]]:
    """The temperatures that are known, by day."""
    rows = having(where(tables["readings"], **wanted), "temperature")
    return {day: known(own, "temperature") for day, own in groups(rows, lambda row: row["time"][:10]).items()}


#: What is right, by the name of the question.
TRUTHS: Mapping[str, Callable[[Tables], Any]] = {
    "returned": lambda t: len(where(t["orders"], status="returned")),
    "city": lambda t: len(where(t["customers"], city="Lisbon")),
    "warmest": lambda t: max(known(where(t["readings"], sensor="A2"), "temperature")),
    "best-paid": lambda t: max(known(where(t["staff"], department="support"), "salary")),
    "large-delivered": lambda t: count(where(t["orders"], status="delivered"), lambda r: r["quantity"] >= 8),
    "early-business": lambda t: count(where(t["customers"], segment="business"), lambda r: r["joined"] < "2021"),
    "warm-humid": lambda t: count(
        having(t["readings"], "temperature", "humidity"), lambda r: r["temperature"] > 20 and r["humidity"] <= 50
    ),
    "salary-band": lambda t: count(
        t["staff"], lambda r: r["department"] in ("sales", "legal") and 40000 <= r["salary"] <= 60000
    ),
    "most-sold": lambda t: top(each(groups(t["orders"], "product"), lambda own: sum(known(own, "quantity")))),
    "most-humid": lambda t: top(each(groups(t["readings"], "sensor"), lambda own: mean(known(own, "humidity")))),
    "revenue": lambda t: round(fsum(map(amount, where(t["orders"], status="delivered"))), 2),
    "mean-salary": lambda t: round(
        mean(r["salary"] for r in where(t["staff"], department="engineering") if r["hired"] > "2015-12-31"), 2
    ),
    "regulars": lambda t: at_least(8, Counter(r["customer_id"] for r in t["orders"]).values()),
    "median-price": lambda t: round(median(known(where(t["orders"], status="returned"), "unit_price")), 2),
    "any-missing": lambda t: len(t["readings"]) - len(having(t["readings"], "temperature", "humidity")),
    "one-missing": lambda t: count(
        having(where(t["readings"], sensor="B1"), "humidity"), lambda r: r["temperature"] is None
    ),
    "copies": lambda t: len(t["staff"]) - len(once(t["staff"])),
    "different-emails": lambda t: len({r["email"].lower() for r in t["staff"]}),
    "weekend": lambda t: count(t["orders"], lambda r: date.fromisoformat(r["date"]).weekday() > 4),
    "first-quarter": lambda t: count(t["staff"], lambda r: r["hired"][5:7] in ("01", "02", "03")),
    "busiest-month": lambda t: top(Counter(r["date"][:7] for r in t["orders"])),
    "at-two": lambda t: round(mean(known((r for r in t["readings"] if r["time"].endswith("14:00")), "temperature")), 2),
    "first-names": lambda t: count(t["customers"], lambda r: r["name"].split()[0].endswith("a")),
    "domain": lambda t: top(Counter(r["email"].split("@")[1].lower() for r in t["staff"])),
    "orders-from-city": lambda t: len(where(joined(t), city="Oslo")),
    "no-orders": without_orders,
    "city-revenue": lambda t: top(revenue_by(t, "city", "delivered")),
    "segment-revenue": lambda t: round(revenue_by(t, "segment", "pending")["business"], 2),
    "hottest-day": lambda t: top({day: mean(own) for day, own in temperatures(t).items()}),
    "daily-spread": lambda t: round(max(map(span, temperatures(t, sensor="A1").values())), 1),
    "new-customers": lambda t: soon_orders(t, 90),
    "longest-gap": longest_gap,
}
