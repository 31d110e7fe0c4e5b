"""The folder that the questions are about: a shop's customers, orders and notes, the same in every run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

CUSTOMERS = {
    "Ada": "Bergen",
    "Ben": "Oslo",
    "Cleo": "Bergen",
    "Dina": "Tromso",
    "Emil": "Oslo",
    "Fay": "Bergen",
    "Gus": "Oslo",
}
FORMER = ("Ada", "Cleo", "Gus", "Hal", "Iris")
PRICES = {"lamp": 40, "desk": 150, "chair": 60, "shelf": 90}
OLD_PRICES = {**PRICES, "chair": 55}
#: By month: customer, product, quantity.
ORDERS: Mapping[str, Sequence[tuple[str, str, int]]] = {
    "2026-01": [("Ada", "lamp", 2), ("Ben", "chair", 4), ("Cleo", "desk", 1), ("Ada", "shelf", 1), ("Gus", "lamp", 3)],
    "2026-02": [
        ("Emil", "chair", 2),
        ("Ada", "lamp", 1),
        ("Fay", "chair", 3),
        ("Ben", "desk", 1),
        ("Cleo", "lamp", 2),
        ("Fay", "shelf", 2),
        ("Emil", "lamp", 1),
    ],
    "2026-03": [("Fay", "desk", 2), ("Gus", "chair", 1), ("Ada", "chair", 2), ("Ben", "lamp", 4)],
}
OLD_ORDERS = [("Hal", "lamp", 1), ("Ada", "chair", 1), ("Iris", "desk", 1)]
NOTES = {
    "ada": "Ada asked for a red lamp.\nThe parcel came late.",
    "ben": "Ben paid in cash.",
    "cleo": "Cleo wants the desk on Friday.\nIt was late in January.\nShe was kind about it.\nCall her first.",
    "fay": "Fay moved; the new address is on the invoice.\nAll came in time.",
    "gus": "Gus returned a chair: the delivery was late.",
}


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV text with `header` and `rows`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def files() -> dict[str, str]:
    """Text by path."""
    columns = ("customer", "product", "quantity")
    return {
        "customers.csv": table(("customer", "city"), CUSTOMERS.items()),
        "products.csv": table(("product", "price"), PRICES.items()),
        **{f"orders-{month}.csv": table(columns, rows) for month, rows in ORDERS.items()},
        "archive/customers-2025.csv": table(("customer",), [(name,) for name in FORMER]),
        "archive/products-2025.csv": table(("product", "price"), OLD_PRICES.items()),
        "archive/orders-2025-12.csv": table(columns, OLD_ORDERS),
        **{f"notes/{name}.txt": text + "\n" for name, text in NOTES.items()},
    }


def write(folder: Path) -> None:
    """Put the files into `folder`."""
    for path, text in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
