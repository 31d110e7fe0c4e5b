"""`rlm-loop doctor`: what this machine can do, which models it reaches, what is missing, what isolation is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from rlm_loop.cli.setup import as_json
from rlm_loop.cli.terminal import echo, fitting, results

if TYPE_CHECKING:
    from rich.table import Table

    from rlm_loop.cli.machine import Finding


def doctor(as_text: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False) -> None:
    """Say what this machine can do, which models it reaches, what is missing, and what isolation protects from."""
    from rlm_loop.cli import machine
    from rlm_loop.repl.isolation.kinds import PROTECTION

    kinds, others, chosen = machine.isolation(), machine.surroundings(), machine.chosen()
    models = machine.models()
    if as_text:
        found = {"isolation": kinds, "surroundings": others, "models": models}
        data = {name: [asdict(f) for f in findings] for name, findings in found.items()}
        echo(as_json({"auto": chosen, **data, "protection": {k: dict(v) for k, v in PROTECTION.items()}}))
        return
    console = results()
    echo(f'Isolation of cells; launcher="auto" means {chosen} here')
    console.print(_found(kinds))
    console.print("\nWhat else is here")
    console.print(_found(others))
    console.print("\nModels")
    console.print(_found(models))
    console.print("\nWhat each kind protects from, as far as it goes (docs/isolation.md)")
    console.print(_protection([k.name for k in kinds]))
    missing = [f for f in (*kinds, *others, *models) if not f.there and f.how]
    if missing:
        console.print("\nHow to get what is missing")
        for finding in missing:
            echo(fitting(f"  {finding.name}: {finding.how}"))


def _found(findings: Iterable[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for f in findings:
        mark = Text("yes", "green") if f.there else Text("no", "red")
        table.add_row(f"  {f.name}", mark, Text(f.found))
    return table


def _protection(kinds: Sequence[str]) -> Table:
    from rich.table import Table

    from rlm_loop.repl.isolation.kinds import PROTECTION

    table = Table("", *kinds, box=None, pad_edge=False)
    for hazard, answers in PROTECTION.items():
        table.add_row(f"  {hazard}", *(answers[kind] for kind in kinds))
    return table
