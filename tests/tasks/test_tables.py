"""The truths of `tables` against pandas, and files that are the same everywhere."""

from __future__ import annotations

import hashlib
from io import StringIO
from typing import Any

import pandas as pd
import pytest

from rlm_loop.tasks.base import INLINE_CAP, Attempt, Task, inline_text
from rlm_loop.tasks.rows import Unfit, top
from rlm_loop.tasks.tables import tables
from rlm_loop.tasks.tables_data import csv_files, parse

SUITE = tables()
FILES: dict[str, str] = {name: str(text) for task in SUITE for name, text in task.files.items()}


def frames() -> tuple[pd.DataFrame, ...]:
    names = ("orders", "customers", "readings", "staff")
    return tuple(pd.read_csv(StringIO(FILES[f"{name}.csv"])) for name in names)


ORDERS, CUSTOMERS, READINGS, STAFF = frames()
ORDERS["date"] = pd.to_datetime(ORDERS["date"])
ORDERS["amount"] = ORDERS["quantity"] * ORDERS["unit_price"]
CUSTOMERS["joined"] = pd.to_datetime(CUSTOMERS["joined"])
READINGS["time"] = pd.to_datetime(READINGS["time"])
STAFF["hired"] = pd.to_datetime(STAFF["hired"])
BOTH = ORDERS.merge(CUSTOMERS, on="customer_id")
DELIVERED = ORDERS[ORDERS.status == "delivered"]


def days_since_joined() -> pd.Series:
    return (BOTH.date - BOTH.joined).dt.days


def spread() -> float:
    days = READINGS[READINGS.sensor == "A1"].groupby(READINGS.time.dt.date).temperature
    return (days.max() - days.min()).max()


WITH_PANDAS: dict[str, Any] = {
    "returned": lambda: (ORDERS.status == "returned").sum(),
    "city": lambda: (CUSTOMERS.city == "Lisbon").sum(),
    "warmest": lambda: READINGS[READINGS.sensor == "A2"].temperature.max(),
    "best-paid": lambda: STAFF[STAFF.department == "support"].salary.max(),
    "large-delivered": lambda: (DELIVERED.quantity >= 8).sum(),
    "early-business": lambda: ((CUSTOMERS.segment == "business") & (CUSTOMERS.joined < "2021-01-01")).sum(),
    "warm-humid": lambda: len(READINGS.query("temperature > 20 and humidity <= 50")),
    "salary-band": lambda: len(STAFF.query("department in ['sales', 'legal'] and 40000 <= salary <= 60000")),
    "most-sold": lambda: ORDERS.groupby("product").quantity.sum().idxmax(),
    "most-humid": lambda: READINGS.groupby("sensor").humidity.mean().idxmax(),
    "revenue": lambda: DELIVERED.amount.sum(),
    "mean-salary": lambda: STAFF.query("department == 'engineering' and hired > '2015-12-31'").salary.mean(),
    "regulars": lambda: (ORDERS.customer_id.value_counts() >= 8).sum(),
    "median-price": lambda: ORDERS[ORDERS.status == "returned"].unit_price.median(),
    "any-missing": lambda: READINGS[["temperature", "humidity"]].isna().any(axis=1).sum(),
    "one-missing": lambda: len(READINGS.query("sensor == 'B1' and humidity.notna() and temperature.isna()")),
    "copies": lambda: STAFF.duplicated().sum(),
    "different-emails": lambda: STAFF.email.str.lower().nunique(),
    "weekend": lambda: (ORDERS.date.dt.day_of_week >= 5).sum(),
    "first-quarter": lambda: (STAFF.hired.dt.quarter == 1).sum(),
    "busiest-month": lambda: str(ORDERS.date.dt.strftime("%Y-%m").value_counts().idxmax()),
    "at-two": lambda: READINGS[READINGS.time.dt.hour == 14].temperature.mean(),
    "first-names": lambda: CUSTOMERS.name.str.split().str[0].str.endswith("a").sum(),
    "domain": lambda: STAFF.email.str.split("@").str[1].value_counts().idxmax(),
    "orders-from-city": lambda: (BOTH.city == "Oslo").sum(),
    "no-orders": lambda: (~CUSTOMERS.customer_id.isin(ORDERS.customer_id)).sum(),
    "city-revenue": lambda: BOTH[BOTH.status == "delivered"].groupby("city").amount.sum().idxmax(),
    "segment-revenue": lambda: BOTH.query("segment == 'business' and status == 'pending'").amount.sum(),
    "hottest-day": lambda: READINGS.groupby(READINGS.time.dt.date).temperature.mean().idxmax(),
    "daily-spread": spread,
    "new-customers": lambda: days_since_joined().between(0, 90).sum(),
    "longest-gap": lambda: ORDERS.sort_values("date").groupby("customer_id").date.diff().dt.days.max(),
}


@pytest.mark.parametrize("task", SUITE.tasks, ids=lambda t: t.id)
def test_pandas_agrees(task: Task) -> None:
    answer = WITH_PANDAS[task.id.removeprefix("tables-")]()
    score = task.score(Attempt(answer, answered=True))
    assert score.resolved, score.reason
    assert task.score(Attempt(f"{answer}")).resolved


@pytest.mark.parametrize("task", SUITE.tasks, ids=lambda t: t.id)
def test_what_is_near_is_wrong(task: Task) -> None:
    near = {int: lambda x: x + 1, float: lambda x: x + 0.02, str: lambda x: x[1:]}[type(task.expected)](task.expected)
    assert not task.score(Attempt(near, answered=True)).resolved
    assert not task.score(Attempt()).resolved


@pytest.mark.parametrize("task", SUITE.tasks, ids=lambda t: t.id)
def test_a_question_shows_each_file(task: Task) -> None:
    assert task.files
    for name, text in task.files.items():
        header, first = str(text).splitlines()[:2]
        assert f"The file {name} ({len(str(text).splitlines()) - 1} rows" in task.question
        assert f"\n{header}\n{first}\n" in task.question
        assert f"{name}:\n{header}\n{first}\n" in task.inline
    assert len(task.inline) < INLINE_CAP + 200
    assert "Answer" in task.question
    assert len(task.question) < 600


def test_shape() -> None:
    assert len(SUITE) == 32
    assert len({t.id for t in SUITE}) == 32
    assert tables(0) == SUITE
    assert tables(1) != SUITE
    for first, second in zip(SUITE.split("dev"), SUITE.split("test"), strict=True):
        assert (first.level, first.tags) == (second.level, second.tags)
    assert [t.level for t in SUITE] == sorted(t.level for t in SUITE)


def test_the_files_are_the_same_bytes_everywhere() -> None:
    digest = hashlib.sha256("".join(FILES[name] for name in sorted(FILES)).encode()).hexdigest()
    assert digest == "120b6ee9c4f3886a63decc860d50f5b63828b71fe213fdc17a7d5cf6fc958448"
    for text in FILES.values():
        assert text.isascii()
        assert "\r" not in text
        assert text.endswith("\n")
        assert len({line.count(",") for line in text.splitlines()}) == 1


@pytest.mark.parametrize("seed", range(1, 8))
def test_other_seeds_have_no_ties_either(seed: int) -> None:
    assert len(tables(seed)) == 32


def test_a_tie_is_found() -> None:
    with pytest.raises(Unfit):
        top({"a": 1.0, "b": 2.0, "c": 2.0})
    assert top({"a": 1.0, "b": 2.0}) == "b"


def test_every_order_has_a_customer() -> None:
    rows = parse(csv_files("any"))
    known = {row["customer_id"] for row in rows["customers"]}
    assert {row["customer_id"] for row in rows["orders"]} <= known


@pytest.mark.parametrize(
    ("files", "cap", "shown"),
    [
        ({"a": "h\n1\n2\n"}, 100, "a:\nh\n1\n2\n"),
        ({"a": "h\n1\n2\n"}, 4, "a:\nh\n1\n(1 more rows are not shown)\n"),
        ({"a": "h\n1\n2\n", "b": "x\n"}, 8, "a:\nh\n1\n(1 more rows are not shown)\n\nb:\nx\n"),
        ({"a": "one long line"}, 3, "a:\none(the rest is not shown)\n"),
    ],
)
def test_inline_text_is_cut_at_lines(files: dict[str, str], cap: int, shown: str) -> None:
    assert inline_text(files, cap) == shown
