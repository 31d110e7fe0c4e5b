"""The tables of the suite `frames`: drawn with a seed in plain Python, the same on every machine and Python version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from rlm_loop.tasks.long_context.plan import Draw
from rlm_loop.tasks.packaged import packaged

#: A row by column; `None` is missing.
Row = Mapping[str, Any]
Rows = Sequence[Row]
Kind = Literal["text", "int", "float", "time", "flag"]


@dataclass(frozen=True)
class Schema:
    """A kind of table: what a person is told of it, its columns with their kinds, and how its rows are drawn."""

    about: str
    columns: Mapping[str, Kind]
    draw: Callable[[Draw], list[tuple[Any, ...]]]

    def rows(self, seed: str) -> list[Row]:
        """The rows of a seed, as dicts in the order of the columns."""
        return [dict(zip(self.columns, values, strict=True)) for values in self.draw(Draw(seed))]


#: Of people in the tables.
FIRST_NAMES = (
    *("Ada", "Bruno", "Clara", "Dario", "Elsa", "Fabio", "Greta", "Hugo", "Ines", "Jonas", "Karla", "Leo"),
    *("Mara", "Nils", "Olga", "Pavel", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Wim", "Yara", "Zoe"),
)
LAST_NAMES = (
    *("Abel", "Berg", "Costa", "Duarte", "Egger", "Falk", "Gallo", "Hahn", "Iversen", "Jansen", "Kowal"),
    *("Lima", "Moreau", "Novak", "Olsen", "Pinto", "Quist", "Rossi", "Stone", "Tamm", "Urban", "Vidal"),
)
_PRICES = {"lamp": 19, "desk": 148, "chair": 62, "shelf": 85, "rug": 44, "clock": 27}
_CITIES = ("Lisbon", "Oslo", "Turin", "Gdansk", "Leeds", "Nantes", "Vienna")
_STOPS = ("Harbour", "Station", "Museum", "Market", "Park", "College")


def _names(draw: Draw, n: int) -> list[str]:
    """Different full names."""
    return draw.some([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES], n)


def _day(draw: Draw, first: date, days: int) -> datetime:
    return datetime(first.year, first.month, first.day) + timedelta(draw.below(days))


def _orders(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    products = list(_PRICES)
    for number in range(900):
        product = products[min(draw.below(6), draw.below(9))]
        price = _PRICES[product] * (90 + draw.below(21)) / 100
        customer = f"C{1 + min(draw.below(90), draw.below(140)):03d}"
        channel = draw.pick(("web", "web", "web", "shop", "shop", "phone"))
        status = draw.pick(("paid",) * 7 + ("open", "open", "void"))
        placed = _day(draw, date(2023, 7, 1), 550)
        rows.append((20001 + number, placed, customer, product, 1 + draw.below(12), price, channel, status))
    return rows


def _readings(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    warm = 0  # a day is warm or cool at all stations
    for hour in range(14 * 24):
        time = datetime(2024, 5, 6) + timedelta(hours=hour)
        warm = draw.below(40) if time.hour == 0 else warm
        for number, station in enumerate(("North", "Hill", "Lake", "Port", "South")):
            tenths = 60 + 11 * number + warm + 7 * (12 - abs(14 - time.hour)) + draw.below(50)
            temperature = None if draw.below(16) == 0 else tenths / 10
            humidity = None if draw.below(20) == 0 else 30 + draw.below(66)
            rows.append((time, station, temperature, humidity, "suspect" if draw.below(25) == 0 else "ok"))
    return rows


def _marks(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for name in _names(draw, 88):
        form, able = draw.pick(("7a", "7b", "8a", "8b")), 30 + draw.below(45)
        for subject in ("Maths", "Physics", "History", "Music"):
            for exam in ("midterm", "final"):
                points = None if draw.below(15) == 0 else min(100, max(0, able - 18 + draw.below(60)))
                rows.append((name, form, subject, exam, points))
    return draw.shuffled(rows)


def _stock(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for number in draw.numbers(110, 100, 1000):
        category = draw.pick(("tools", "paint", "garden", "electrical"))
        cents, gone = 150 + draw.below(9000), draw.below(9) == 0
        supplier = None if draw.below(10) == 0 else draw.pick(("Halden", "Orla & Co", "Pekka", "Sunde"))
        for warehouse in ("Bergen", "Graz", "Porto"):
            quantity = 0 if draw.below(9) == 0 else draw.below(160)
            counted = _day(draw, date(2024, 1, 8), 150)
            level = 10 * (2 + draw.below(9))
            rows.append((f"K{number}", category, warehouse, quantity, level, cents / 100, supplier, counted, gone))
    return draw.shuffled(rows)


def _flights(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for _ in range(1100):
        airline = draw.pick(("Kite", "Nordan", "Nordan", "Sol"))
        origin, destination = draw.some(_CITIES, 2)
        seats = draw.pick((72, 120, 186))
        status = draw.pick(("landed",) * 18 + ("diverted", "cancelled"))
        delay = None if status == "cancelled" else min(draw.below(90), draw.below(90)) - 12
        departure = _day(draw, date(2024, 2, 1), 90) + timedelta(hours=5 + draw.below(18), minutes=5 * draw.below(12))
        number = f"{airline[:2].upper()}{100 + draw.below(800)}"
        booked = seats * (35 + draw.below(66)) // 100
        rows.append((number, airline, departure, origin, destination, seats, booked, delay, status))
    return sorted(rows, key=lambda row: (row[2], row[0]))


def _members(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    plans = ("free", "free", "basic", "pro")
    for name in _names(draw, 370 + draw.below(40)):
        first, last = name.split()
        email = f"{first}.{last}@{draw.pick(('alpha', 'beta', 'gamma'))}.example"
        email = email if draw.below(3) == 0 else email.lower()
        joined = _day(draw, date(2021, 1, 1), 1200)
        left = joined + timedelta(20 + draw.below(700)) if draw.below(3) == 0 else None
        age = None if draw.below(11) == 0 else 17 + draw.below(60)
        country = draw.pick(("DE", "DE", "FR", "ES", "PL"))
        rows.append((email, name, country, draw.pick(plans), age, _iso(joined), left and _iso(left)))
        if draw.below(9) == 0:  # came again, under another spelling of the address
            again = joined + timedelta(1 + draw.below(200))
            rows.append((email.upper(), name, country, draw.pick(plans), age, _iso(again), None))
    rows += [rows[draw.below(len(rows))] for _ in range(20 + draw.below(20))]
    return draw.shuffled(rows)


def _iso(day: datetime) -> str:
    return day.date().isoformat()


def _trips(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for bike in range(1, 61):
        time, at = datetime(2024, 6, 3, 6), draw.pick(_STOPS)
        for _ in range(16 + draw.below(24)):
            time += timedelta(minutes=15 + draw.below(600))
            start, minutes = time, 4 + min(draw.below(80), draw.below(80))
            at = draw.pick(_STOPS) if draw.below(30) == 0 else at  # carried there by van
            there = at if draw.below(9) == 0 else draw.pick(_STOPS)
            done = draw.below(25) > 0
            rider = draw.pick(("member", "member", "guest"))
            cents = (0 if rider == "member" else 100) + 12 * minutes
            time += timedelta(minutes=minutes)
            values = (start, time, at, there, rider, cents / 100) if done else (start, None, at, None, rider, None)
            rows.append((f"B{bike:02d}", *values))
            at = there
    return sorted(rows, key=lambda row: (row[1], row[0]))


def _staff(draw: Draw) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    numbers = draw.numbers(220, 1000, 9999)
    departments = ("sales", "engineering", "support", "finance", "legal")
    for at, name in enumerate(_names(draw, 220)):
        manager = None if at == 0 else numbers[0] if at < 8 else numbers[draw.below(min(at, 30))]
        salary = 31000 + 250 * draw.below(180) + (9000 if at < 30 else 0)
        bonus = None if draw.below(4) == 0 else 100 * draw.below(50)
        hired = _day(draw, date(2009, 1, 1), 5600)
        rows.append((numbers[at], name, draw.pick(departments), manager, salary, bonus, hired))
    return draw.shuffled(rows)


_DRAWS: Mapping[str, Callable[[Draw], list[tuple[Any, ...]]]] = {
    "orders": _orders,
    "readings": _readings,
    "marks": _marks,
    "stock": _stock,
    "flights": _flights,
    "members": _members,
    "trips": _trips,
    "staff": _staff,
}
SCHEMAS: Mapping[str, Schema] = {
    name: Schema(row["about"], row["columns"], _DRAWS[name]) for name, row in packaged("frame_tables.json").items()
}
