"""The CSV files of the suite `tables`: drawn with a seed, the same bytes on every machine and Python version."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from io import StringIO

from experiments.suite_truths.tables import FIRST_NAMES, LAST_NAMES, Rows
from rlm_loop.tasks.long_context.plan import Draw

Tables = Mapping[str, Rows]

CITIES = ("Lisbon", "Oslo", "Turin", "Gdansk", "Leeds", "Nantes")
SEGMENTS = ("private", "private", "business", "school")
PRODUCTS = {"lamp": 19, "desk": 148, "chair": 62, "shelf": 85, "rug": 44, "clock": 27, "stool": 31, "frame": 12}
STATUSES = ("delivered",) * 6 + ("returned", "pending", "cancelled")
DEPARTMENTS = ("sales", "engineering", "support", "finance", "legal")
DOMAINS = ("alpha.example", "beta.example", "gamma.example", "delta.example")
SENSORS = ("A1", "A2", "A3", "B1", "B2")


def csv_files(seed: str) -> dict[str, str]:
    """File name to text: orders (600 rows), customers (90), readings (800), staff (240)."""
    return {
        "orders.csv": _orders(Draw(f"{seed}/orders")),
        "customers.csv": _customers(Draw(f"{seed}/customers")),
        "readings.csv": _readings(Draw(f"{seed}/readings")),
        "staff.csv": _staff(Draw(f"{seed}/staff")),
    }


def parse(files: Mapping[str, str]) -> Tables:
    """The rows of each file, by its name without the ending."""
    rows = {name.removesuffix(".csv"): csv.DictReader(StringIO(text)) for name, text in files.items()}
    return {
        name: [{column: _value(text) for column, text in row.items()} for row in read] for name, read in rows.items()
    }


def _value(text: str) -> int | float | str | None:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text or None


def _day(draw: Draw, first: date, days: int) -> str:
    return (first + timedelta(draw.below(days))).isoformat()


def _text(header: str, rows: Sequence[Sequence[object]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def _orders(draw: Draw) -> str:
    rows: list[list[object]] = []
    names = list(PRODUCTS)
    for number in range(1001, 1601):
        product = names[min(draw.below(8), draw.below(12))]
        cents = PRODUCTS[product] * (90 + draw.below(21))
        customer = f"C{1 + min(draw.below(88), draw.below(150)):03d}"
        day, quantity, status = _day(draw, date(2023, 1, 1), 546), 1 + draw.below(12), draw.pick(STATUSES)
        rows.append([number, day, customer, product, quantity, f"{cents // 100}.{cents % 100:02d}", status])
    return _text("order_id,date,customer_id,product,quantity,unit_price,status", rows)


def _customers(draw: Draw) -> str:
    rows = [
        [
            f"C{n:03d}",
            f"{draw.pick(FIRST_NAMES[:20])} {draw.pick(LAST_NAMES[:16])}",
            draw.pick(CITIES),
            draw.pick(SEGMENTS),
            _day(draw, date(2018, 1, 1), 2100),
        ]
        for n in range(1, 91)
    ]
    return _text("customer_id,name,city,segment,joined", rows)


def _readings(draw: Draw) -> str:
    rows: list[list[object]] = []
    for hour in range(160):
        time = datetime(2024, 4, 1) + timedelta(hours=hour)
        for number, sensor in enumerate(SENSORS):
            tenths = 120 + 9 * number + 8 * (12 - abs(13 - time.hour)) + draw.below(60)
            temperature = "" if draw.below(14) == 0 else f"{tenths // 10}.{tenths % 10}"
            humidity = "" if draw.below(18) == 0 else str(35 + draw.below(55))
            rows.append([f"{time:%Y-%m-%d %H:%M}", sensor, temperature, humidity])
    return _text("time,sensor,temperature,humidity", rows)


def _staff(draw: Draw) -> str:
    rows: list[list[object]] = []
    while len(rows) < 240:
        if rows and draw.below(12) == 0:
            rows.append(rows[draw.below(len(rows))])
            continue
        first, last = draw.pick(FIRST_NAMES[:20]), draw.pick(LAST_NAMES[:16])
        email = f"{first}.{last}@{draw.pick(DOMAINS)}"
        email = email if draw.below(4) == 0 else email.lower()
        salary = 31000 + 250 * draw.below(200)
        rows.append([email, f"{last} {first}", draw.pick(DEPARTMENTS), salary, _day(draw, date(2010, 1, 1), 5400)])
    return _text("email,name,department,salary,hired", rows)
