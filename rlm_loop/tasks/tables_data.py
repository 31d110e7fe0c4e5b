"""The CSV files of the suite `tables`: drawn with a seed, the same bytes on every machine and Python version.

Only `Random.random()` is used, the one method whose sequence Python promises to keep.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from io import StringIO
from random import Random

Row = dict[str, str]
Tables = Mapping[str, Sequence[Row]]

CITIES = ("Lisbon", "Oslo", "Turin", "Gdansk", "Leeds", "Nantes")
SEGMENTS = ("private", "private", "business", "school")
PRODUCTS = {"lamp": 19, "desk": 148, "chair": 62, "shelf": 85, "rug": 44, "clock": 27, "stool": 31, "frame": 12}
STATUSES = ("delivered",) * 6 + ("returned", "pending", "cancelled")
FIRST = (
    *("Ada", "Bruno", "Clara", "Dario", "Elsa", "Fabio", "Greta", "Hugo", "Ines", "Jonas"),
    *("Karla", "Leo", "Mara", "Nils", "Olga", "Pavel", "Rosa", "Sven", "Tara", "Ugo"),
)
LAST = (
    *("Abel", "Berg", "Costa", "Duarte", "Egger", "Falk", "Gallo", "Hahn"),
    *("Iversen", "Jansen", "Kowal", "Lima", "Moreau", "Novak", "Olsen", "Pinto"),
)
DEPARTMENTS = ("sales", "engineering", "support", "finance", "legal")
DOMAINS = ("alpha.example", "beta.example", "gamma.example", "delta.example")
SENSORS = ("A1", "A2", "A3", "B1", "B2")


def csv_files(seed: str) -> dict[str, str]:
    """File name to text: orders (600 rows), customers (90), readings (800), staff (240)."""
    return {
        "orders.csv": _orders(_Draw(f"{seed}/orders")),
        "customers.csv": _customers(_Draw(f"{seed}/customers")),
        "readings.csv": _readings(_Draw(f"{seed}/readings")),
        "staff.csv": _staff(_Draw(f"{seed}/staff")),
    }


def parse(files: Mapping[str, str]) -> dict[str, list[Row]]:
    """The rows of each file, by its name without the ending."""
    return {name.removesuffix(".csv"): list(csv.DictReader(StringIO(text))) for name, text in files.items()}


class _Draw:
    def __init__(self, seed: str) -> None:
        self.random = Random(seed).random

    def below(self, n: int) -> int:
        return int(self.random() * n)

    def pick(self, items: Sequence[str]) -> str:
        return items[self.below(len(items))]

    def day(self, first: date, days: int) -> str:
        return (first + timedelta(self.below(days))).isoformat()


def _text(header: str, rows: Sequence[Sequence[object]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def _orders(draw: _Draw) -> str:
    rows: list[list[object]] = []
    names = list(PRODUCTS)
    for number in range(1001, 1601):
        product = names[min(draw.below(8), draw.below(12))]
        cents = PRODUCTS[product] * (90 + draw.below(21))
        customer = f"C{1 + min(draw.below(88), draw.below(150)):03d}"
        day, quantity, status = draw.day(date(2023, 1, 1), 546), 1 + draw.below(12), draw.pick(STATUSES)
        rows.append([number, day, customer, product, quantity, f"{cents // 100}.{cents % 100:02d}", status])
    return _text("order_id,date,customer_id,product,quantity,unit_price,status", rows)


def _customers(draw: _Draw) -> str:
    rows = [
        [
            f"C{n:03d}",
            f"{draw.pick(FIRST)} {draw.pick(LAST)}",
            draw.pick(CITIES),
            draw.pick(SEGMENTS),
            draw.day(date(2018, 1, 1), 2100),
        ]
        for n in range(1, 91)
    ]
    return _text("customer_id,name,city,segment,joined", rows)


def _readings(draw: _Draw) -> str:
    rows: list[list[object]] = []
    for hour in range(160):
        time = datetime(2024, 4, 1) + timedelta(hours=hour)
        for number, sensor in enumerate(SENSORS):
            tenths = 120 + 9 * number + 8 * (12 - abs(13 - time.hour)) + draw.below(60)
            temperature = "" if draw.below(14) == 0 else f"{tenths // 10}.{tenths % 10}"
            humidity = "" if draw.below(18) == 0 else str(35 + draw.below(55))
            rows.append([f"{time:%Y-%m-%d %H:%M}", sensor, temperature, humidity])
    return _text("time,sensor,temperature,humidity", rows)


def _staff(draw: _Draw) -> str:
    rows: list[list[object]] = []
    while len(rows) < 240:
        if rows and draw.below(12) == 0:
            rows.append(rows[draw.below(len(rows))])
            continue
        first, last = draw.pick(FIRST), draw.pick(LAST)
        email = f"{first}.{last}@{draw.pick(DOMAINS)}"
        email = email if draw.below(4) == 0 else email.lower()
        salary = 31000 + 250 * draw.below(200)
        rows.append([email, f"{last} {first}", draw.pick(DEPARTMENTS), salary, draw.day(date(2010, 1, 1), 5400)])
    return _text("email,name,department,salary,hired", rows)
