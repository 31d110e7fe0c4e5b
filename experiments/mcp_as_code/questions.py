"""Fourteen questions about the folder, each of several calls; the truths are computed from the same data."""

from __future__ import annotations

from collections import Counter
from typing import Any

from folder import CUSTOMERS, FORMER, NOTES, OLD_ORDERS, OLD_PRICES, ORDERS, PRICES, files

from rlm_loop import Suite, Task

HEADING = (
    "Import nothing and open nothing: read each file with read_text_file, which returns its text. For example, the "
    "path 'archive/customers-2025.csv' gives the names of customers, one a line after the header. There are "
    "customers.csv with the columns customer,city; products.csv with product,price; orders-2026-01.csv, "
    "orders-2026-02.csv and orders-2026-03.csv with customer,product,quantity, one line an order after the header; "
    "archive/products-2025.csv and archive/orders-2025-12.csv with the same columns as those of 2026; and "
    "notes/ada.txt, notes/ben.txt, notes/cleo.txt, notes/fay.txt and notes/gus.txt.\n"
)


def truths() -> dict[str, tuple[str, Any]]:
    """Question and answer by name."""
    every = [order for month in ORDERS.values() for order in month]
    sold: Counter[str] = Counter()
    for _, product, quantity in every:
        sold[product] += quantity
    january = ORDERS["2026-01"]
    made = files()
    return {
        "price": (
            "Which product has another price in products.csv than in archive/products-2025.csv?",
            next(product for product, price in PRICES.items() if OLD_PRICES[product] != price),
        ),
        "longest": (
            "Which file in notes has the most lines? Answer with its name, such as ada.txt.",
            f"{max(NOTES, key=lambda name: NOTES[name].count(chr(10)))}.txt",
        ),
        "more": (
            "How many more orders does orders-2026-02.csv have than archive/orders-2025-12.csv?",
            len(ORDERS["2026-02"]) - len(OLD_ORDERS),
        ),
        "both": (
            "How many customers are both in customers.csv and in archive/customers-2025.csv?",
            len(set(CUSTOMERS) & set(FORMER)),
        ),
        "late": ("How many files in notes contain the word late?", sum("late" in text for text in NOTES.values())),
        "bergen": (
            "How many orders of January 2026 are of customers from Bergen?",
            sum(CUSTOMERS[customer] == "Bergen" for customer, _, _ in january),
        ),
        "orders": ("How many orders are in the three files of 2026 together?", len(every)),
        "busiest": (
            "Which of the three order files of 2026 has the most orders? Answer with the name of the file.",
            f"orders-{max(ORDERS, key=lambda m: len(ORDERS[m]))}.csv",
        ),
        "texts": (
            "How many files whose name ends in .csv are there, in the folder and all folders below it?",
            sum(path.endswith(".csv") for path in made),
        ),
        "ada": (
            "What is the sum of the quantities that Ada ordered in the three months of 2026?",
            sum(quantity for customer, _, quantity in every if customer == "Ada"),
        ),
        "revenue": (
            "What is the sum of price times quantity over the orders of January 2026, with the prices of products.csv?",
            sum(PRICES[product] * quantity for _, product, quantity in january),
        ),
        "without": (
            "Which customer of customers.csv has no order in 2026?",
            next(name for name in CUSTOMERS if name not in {customer for customer, _, _ in every}),
        ),
        "most-sold": (
            "Of which product was the largest quantity ordered in the three months of 2026 together?",
            max(sold, key=lambda product: sold[product]),
        ),
        "bytes": (
            "What is the size in bytes of the three files in archive together?",
            sum(len(text.encode()) for path, text in made.items() if path.startswith("archive/")),
        ),
    }


def suite() -> Suite:
    """The questions as tasks that hold no files: only a tool can read them, and code is for the arm `code`."""
    tasks = tuple(
        Task(f"shop-{name}", HEADING + question, expected, needs_repl=False)
        for name, (question, expected) in truths().items()
    )
    return Suite("shop", tasks, "made for this experiment", "Apache-2.0")
