"""`rlm-loop trace price` and `trace cache`: what a recorded run would have cost elsewhere."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from rlm_loop.cli.setup import Misuse, Run, TraceFile, echo_json, record_of
from rlm_loop.cli.terminal import echo

_Dollars = "US dollars per million"


def price_run(
    file: TraceFile,
    input_: Annotated[float | None, Option("--input", help=f"{_Dollars} prompt tokens.")] = None,
    output: Annotated[float | None, Option(help=f"{_Dollars} generated tokens.")] = None,
    cached: Annotated[float | None, Option(help=f"{_Dollars} tokens read from a cache.")] = None,
    cache_write: Annotated[float | None, Option(help=f"{_Dollars} written to one.")] = None,
    prices: Annotated[str | None, Option(metavar="FILE", help="Prices by model, JSON or TOML.")] = None,
    cache: Annotated[str | None, Option(help="Simulate a cache: openai, anthropic or llama.cpp.")] = None,
    run: Run = None,
    json_: Annotated[bool, Option("--json", help="One JSON object per call, one a line.")] = False,
) -> None:
    """What a recorded run would have cost at other prices; without any, at those of the tables that are installed."""
    from rlm_loop.accounting.pricing import Price, PriceError, price, read_prices

    try:
        if prices is not None:
            if (input_, output, cached, cache_write) != (None,) * 4:
                raise Misuse("give prices as --prices FILE or as --input and --output, not both")
            table = read_prices(prices)
        elif (input_, output, cached, cache_write) == (None,) * 4:
            table = None
        elif input_ is None or output is None:
            raise Misuse("give --input and --output (US dollars per million tokens), or --prices FILE")
        else:
            table = {"*": Price(input_, output, cached, cache_write)}
        bill = price(record_of(file, run), table, cache=cache)
    except (PriceError, ValueError) as error:  # such as an unknown cache
        raise Misuse(str(error)) from error
    if json_:
        echo_json(map(vars, bill.lines))
        return
    echo(str(bill))


def cache_run(
    file: TraceFile,
    rules: Annotated[str, Option(help="openai, anthropic or llama.cpp.")] = "openai",
    run: Run = None,
    json_: Annotated[bool, Option("--json", help="One JSON object per call, one a line.")] = False,
) -> None:
    """Which prompt tokens of a recorded run a provider would have had in its cache, and what breaks it."""
    from rlm_loop.accounting.prompt_cache import simulate

    try:
        report = simulate(record_of(file, run), rules)
    except ValueError as error:
        raise Misuse(str(error)) from error
    if json_:
        echo_json(map(vars, report.reads))
        return
    echo(str(report))
