"""Questions over seeded CSV files: filter, group, join, dates, duplicates, missing values, text columns.

The files lie in the REPL's working folder; the questions say that pandas is installed (extra `suites`).  The truth
is computed from the same files in plain Python.  Neighbours are alike in kind and level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count as natural_numbers
from typing import Any

from rlm_loop.tasks import tables_truths as truth
from rlm_loop.tasks.base import Suite, Task, inline_text
from rlm_loop.tasks.match import How, Match
from rlm_loop.tasks.tables_data import Tables, csv_files, parse
from rlm_loop.tasks.tables_truths import Tie, amount, count, groups, joined, mean, numbers, top

INTEGER = "Answer with an integer."
CENTS = "Answer with a number rounded to 2 decimals."
NAME = "Answer with the name only."


def tables(seed: int = 0) -> Suite:
    """32 questions over four CSV files drawn with `seed`; `level` 1 is one filter, 3 a join or several steps.

    With a seed whose files give a question two right answers (a tie), the next files in its sequence are taken.
    """
    for attempt in natural_numbers():
        files = csv_files(f"{seed}.{attempt}")
        try:
            return Suite("tables", _tasks(files), f"CSV files, seed {seed}", "Apache-2.0")
        except Tie:
            continue
    raise AssertionError("unreachable")


def _tasks(files: Mapping[str, str]) -> tuple[Task, ...]:
    rows = parse(files)
    orders, customers, readings, staff = rows["orders"], rows["customers"], rows["readings"], rows["staff"]

    def task(
        name: str,
        level: int,
        kind: str,
        used: str,
        question: str,
        function: Callable[[Tables], Any],
        how: How = "exact",
        tolerance: float | None = None,
    ) -> Task:
        mine = {f"{file}.csv": files[f"{file}.csv"] for file in used.split()}
        expected = function(rows)
        if isinstance(expected, float) and tolerance is None:
            tolerance = 0.005  # rounded or not, half up or half even
        return Task(
            f"tables-{name}",
            f"{_heading(mine)}\n{question}",
            Match(expected, how, tolerance),
            expected,
            files=mine,
            inline=inline_text(mine),
            level=level,
            tags=("tables", kind),
        )

    return (
        # one filter
        task(
            "returned",
            1,
            "filter",
            "orders",
            f"How many orders have status returned? {INTEGER}",
            lambda t: count(orders, lambda r: r["status"] == "returned"),
        ),
        task(
            "city",
            1,
            "filter",
            "customers",
            f"How many customers live in Lisbon? {INTEGER}",
            lambda t: count(customers, lambda r: r["city"] == "Lisbon"),
        ),
        task(
            "warmest",
            1,
            "filter",
            "readings",
            "What is the highest temperature of sensor A2? Answer with a number.",
            lambda t: max(numbers(groups(readings, "sensor")["A2"], "temperature")),
            tolerance=0.0,
        ),
        task(
            "best-paid",
            1,
            "filter",
            "staff",
            f"What is the highest salary in the support department? {INTEGER}",
            lambda t: int(max(numbers(groups(staff, "department")["support"], "salary"))),
        ),
        # two conditions
        task(
            "large-delivered",
            1,
            "two conditions",
            "orders",
            f"How many delivered orders have a quantity of 8 or more? {INTEGER}",
            lambda t: count(orders, lambda r: r["status"] == "delivered" and int(r["quantity"]) >= 8),
        ),
        task(
            "early-business",
            1,
            "two conditions",
            "customers",
            f"How many business customers joined before 2021? {INTEGER}",
            lambda t: count(customers, lambda r: r["segment"] == "business" and r["joined"] < "2021"),
        ),
        task(
            "warm-humid",
            1,
            "two conditions",
            "readings",
            f"How many rows have a temperature above 20 and a humidity of at most 50? {INTEGER}",
            lambda t: count(
                readings,
                lambda r: (
                    bool(r["temperature"] and r["humidity"])
                    and float(r["temperature"]) > 20
                    and int(r["humidity"]) <= 50
                ),
            ),
        ),
        task(
            "salary-band",
            1,
            "two conditions",
            "staff",
            f"How many rows of sales or legal have a salary from 40000 to 60000, both included? {INTEGER}",
            lambda t: count(
                staff, lambda r: r["department"] in ("sales", "legal") and 40000 <= int(r["salary"]) <= 60000
            ),
        ),
        # groups
        task(
            "most-sold",
            2,
            "group by",
            "orders",
            f"Which product has the largest total quantity? {NAME}",
            lambda t: top({k: sum(numbers(v, "quantity")) for k, v in groups(orders, "product").items()}),
        ),
        task(
            "most-humid",
            2,
            "group by",
            "readings",
            f"Which sensor has the highest mean humidity? {NAME}",
            lambda t: top(
                {k: sum(n) / len(n) for k, v in groups(readings, "sensor").items() if (n := numbers(v, "humidity"))}
            ),
        ),
        task(
            "revenue",
            2,
            "group by",
            "orders",
            f"What is the sum of quantity times unit_price over all delivered orders? {CENTS}",
            lambda t: round(truth.fsum(amount(r) for r in orders if r["status"] == "delivered"), 2),
        ),
        task(
            "mean-salary",
            2,
            "group by",
            "staff",
            f"What is the mean salary of all rows of engineering hired after 2015-12-31? {CENTS}",
            lambda t: mean(
                float(r["salary"]) for r in staff if r["department"] == "engineering" and r["hired"] > "2015-12-31"
            ),
        ),
        task(
            "regulars",
            2,
            "group by",
            "orders",
            f"How many customers have 8 or more orders? {INTEGER}",
            lambda t: truth.per_customer(t, len, 8),
        ),
        task(
            "median-price",
            2,
            "group by",
            "orders",
            f"What is the median unit_price of the returned orders? {CENTS}",
            lambda t: truth.median_price(t, "returned"),
        ),
        # missing values
        task(
            "any-missing",
            2,
            "missing",
            "readings",
            f"How many rows lack the temperature, the humidity or both? {INTEGER}",
            lambda t: count(readings, lambda r: not (r["temperature"] and r["humidity"])),
        ),
        task(
            "one-missing",
            2,
            "missing",
            "readings",
            f"How many rows of sensor B1 have a humidity but no temperature? {INTEGER}",
            lambda t: count(readings, lambda r: r["sensor"] == "B1" and bool(r["humidity"]) and not r["temperature"]),
        ),
        # duplicates
        task(
            "copies",
            2,
            "duplicates",
            "staff",
            f"How many rows are exact copies of an earlier row? {INTEGER}",
            lambda t: truth.copies(staff),
        ),
        task(
            "different-emails",
            2,
            "duplicates",
            "staff",
            f"How many different emails are there if upper and lower case are the same? {INTEGER}",
            lambda t: len({r["email"].lower() for r in staff}),
        ),
        # dates
        task(
            "weekend",
            2,
            "dates",
            "orders",
            f"How many orders were placed on a Saturday or a Sunday? {INTEGER}",
            truth.weekend_orders,
        ),
        task(
            "first-quarter",
            2,
            "dates",
            "staff",
            f"How many rows were hired in January, February or March of any year? {INTEGER}",
            lambda t: count(staff, lambda r: r["hired"][5:7] in ("01", "02", "03")),
        ),
        task(
            "busiest-month",
            2,
            "dates",
            "orders",
            "In which month were most orders placed? Answer as YYYY-MM.",
            truth.busiest_month,
        ),
        task(
            "at-two",
            2,
            "dates",
            "readings",
            f"What is the mean temperature of all sensors at 14:00? {CENTS}",
            lambda t: mean(numbers([r for r in readings if r["time"].endswith("14:00")], "temperature")),
        ),
        # text
        task(
            "first-names",
            2,
            "text",
            "customers",
            f"How many customers have a first name that ends in a? {INTEGER}",
            lambda t: count(customers, lambda r: r["name"].split()[0].endswith("a")),
        ),
        task(
            "domain",
            2,
            "text",
            "staff",
            f"Which domain (the part of email after @) has the most rows? {NAME}",
            lambda t: top(truth.Counter(r["email"].split("@")[1].lower() for r in staff)),
        ),
        # joins
        task(
            "orders-from-city",
            3,
            "join",
            "orders customers",
            f"How many orders were placed by customers who live in Oslo? {INTEGER}",
            lambda t: count(joined(t), lambda r: r["city"] == "Oslo"),
        ),
        task(
            "no-orders",
            3,
            "join",
            "orders customers",
            f"How many customers have no order? {INTEGER}",
            truth.without_orders,
        ),
        task(
            "city-revenue",
            3,
            "join",
            "orders customers",
            f"Which city has the largest sum of quantity times unit_price over delivered orders? {NAME}",
            lambda t: top(truth.revenue_by(t, "city", "delivered")),
        ),
        task(
            "segment-revenue",
            3,
            "join",
            "orders customers",
            f"What is the sum of quantity times unit_price over the pending orders of business customers? {CENTS}",
            lambda t: round(truth.revenue_by(t, "segment", "pending")["business"], 2),
        ),
        # several steps
        task(
            "hottest-day",
            3,
            "several steps",
            "readings",
            "Which day has the highest mean temperature? Answer as YYYY-MM-DD.",
            truth.hottest_day,
            how="date",
        ),
        task(
            "daily-spread",
            3,
            "several steps",
            "readings",
            "What is the largest difference between the highest and the lowest "
            "temperature of sensor A1 within one day? Answer with a number.",
            lambda t: truth.daily_spread(t, "A1"),
            tolerance=0.001,
        ),
        task(
            "new-customers",
            3,
            "several steps",
            "orders customers",
            f"How many orders were placed on the day that the customer joined or at most 90 days later? {INTEGER}",
            lambda t: truth.soon_orders(t, 90),
        ),
        task(
            "longest-gap",
            3,
            "several steps",
            "orders",
            f"What is the largest number of days between two consecutive orders of the same customer? {INTEGER}",
            truth.longest_gap,
        ),
    )


def _heading(files: Mapping[str, str]) -> str:
    """What a model is told of the files: name, number of rows, header and first row."""
    said: list[str] = []
    for name, text in files.items():
        header, first, *more = text.splitlines()
        also = ", pandas is installed" if not said else ""
        said.append(f"The file {name} ({1 + len(more)} rows{also}) starts with:\n{header}\n{first}")
    return "\n".join(said)
