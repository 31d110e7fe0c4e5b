"""What a recorded run would have cost at other prices.

The tokens are those on record.  What a price needs and the record does not have (how much came from a cache, how much
was written to one) makes the cost a range, never a guess; with the rules of a cache (`prompt_cache`) it is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_loop.accounting.attribution import Row
from rlm_loop.accounting.charges import accounts_of, rows_under
from rlm_loop.accounting.prices import ANY, Price, PriceError, known_price, read_prices
from rlm_loop.accounting.prompt_cache import Rules, simulate
from rlm_loop.messages import Usage
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ANY", "Bill", "CallPrice", "Price", "PriceError", "price", "read_prices"]


@dataclass(frozen=True)
class CallPrice:
    """One call.  `low` and `high` are US dollars; both are `None` where its tokens are not known.

    `cached` and `written` are what the cost was worked out with, `None` where a range was taken over them.
    """

    call: int
    turn: int
    depth: int
    model: str
    input_tokens: int | None
    cached: int | None
    written: int | None
    output_tokens: int | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Bill:
    """What a run would have cost.

    `causes` are US dollars by cause of the prompt tokens, and `output`, at the high end of the range.  `parts` are the
    same by cause, detail (such as the tool) and state: `read` at the full price, `cached`, `written` to the cache, and
    `output`.
    """

    lines: tuple[CallPrice, ...]
    causes: Mapping[str, float]
    cache: str
    parts: Mapping[tuple[str, str, str], float] = field(default_factory=dict[tuple[str, str, str], float])

    @property
    def unknown(self) -> int:
        """Calls whose cost is not known, because their tokens are not."""
        return sum(line.high is None for line in self.lines)

    @property
    def low(self) -> float:
        """US dollars of the calls that are known, if the cache had held all that had been sent before."""
        return sum(line.low or 0.0 for line in self.lines)

    @property
    def high(self) -> float:
        """US dollars of the calls that are known, if nothing had been read from the cache and all written to it."""
        return sum(line.high or 0.0 for line in self.lines)

    @property
    def cost(self) -> float | None:
        """US dollars; `None` where it is a range or a call is not known."""
        return self.high if not self.unknown and math.isclose(self.low, self.high, abs_tol=1e-12) else None

    def frame(self) -> pd.DataFrame:
        """One row a call."""
        import pandas as pd

        return pd.DataFrame([asdict(line) for line in self.lines], columns=[f.name for f in fields(CallPrice)])

    def __str__(self) -> str:
        cost = self.cost
        known = f"${cost:.6f}" if cost is not None else f"${self.low:.6f} to ${self.high:.6f}"
        lines = [f"{known} for {len(self.lines)} calls, {self.cache}"]
        if self.unknown:
            lines.append(f"{self.unknown} calls more whose tokens nobody reported: their cost is not known")
        elif cost is None:
            lines.append("a range, because the trace does not say what was read from a cache and written to it")
        lines += [f"  {cause}: ${part:.6f}{self._states(cause)}" for cause, part in self.causes.items()]
        return "\n".join(lines)

    def _states(self, cause: str) -> str:
        """What of a cause's cost was read new, taken from the cache and written to it, where a cache had part in it."""
        sums = dict.fromkeys(("read", "cached", "written"), 0.0)
        for (whose, _, state), dollars in self.parts.items():
            if whose == cause and state in sums:
                sums[state] += dollars
        if not sums["cached"] + sums["written"]:
            return ""
        return f" (new ${sums['read']:.6f}, cached ${sums['cached']:.6f}, written ${sums['written']:.6f})"


def price(
    trace: str | Path | RunRecord,
    prices: Price | Mapping[str, Price] | None = None,
    *,
    cache: str | Rules | None = None,
    run: Run = None,
) -> Bill:
    """The bill of a recorded run under other prices.

    `prices` are one for all models, or by model name (`"*"`: any other); without them those of the tables that are
    installed (`prices.known_price`).  Without `cache` the tokens read from a cache
    and written to one are those that the provider reported.  Where it did not say what was read, the cost lies between
    that of a cache which held all re-sent text and that of none; where it did not say what was written and
    `cache_write` is priced apart, between nothing and everything not read.  With `cache` (a name of
    `prompt_cache.RULES`, or `Rules`) reads and writes are simulated.  Raises `PriceError` for a model without a price
    and `TraceError` for a bad file.
    """
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    report = simulate(record, cache) if cache is not None else None
    simulated = {r.call: (r.hit, r.written) for r in report.reads} if report is not None else None
    models = {(e.get("request"), e.get("node", "0")): "" for e in record.of("reply")}
    models |= {(e.get("digest"), e.get("node", "0")): str(e.get("model", "")) for e in record.of("request")}
    table = _table(prices, set(models.values()))
    lines: list[CallPrice] = []
    parts: dict[tuple[str, str, str], float] = {}
    for event, prompt, _, found in accounts_of(record):
        model = models[event["request"], event.get("node", "0")]
        own = table.get(model) or table[ANY]
        number, usage = int(event["charged"]["call"]), found.usage
        who = (number, int(event["turn"]), int(event["depth"]), model)
        if usage.input_tokens is None or usage.output_tokens is None:
            lines.append(CallPrice(*who, usage.input_tokens, None, None, usage.output_tokens, None, None))
            continue
        cases = _cases(own, usage, rows_under(event, prompt, found, None), (simulated or {}).get(number))
        costs = [own.of_input(usage.input_tokens, *case) for case in cases]
        out = usage.output_tokens * own.output / 1e6
        same = len(set(cases)) == 1
        used = cases[0] if same else (cases[0][0] if len({c[0] for c in cases}) == 1 else None, None)
        lines.append(
            CallPrice(*who, usage.input_tokens, *used, usage.output_tokens, min(costs) + out, max(costs) + out)
        )
        dear = cases[costs.index(max(costs))]
        for row in rows_under(event, prompt, found, *dear):
            hit, put = row.cached or 0, row.written or 0
            states = {"cached": (hit, hit, 0), "written": (put, 0, put), "read": (row.tokens - hit - put, 0, 0)}
            for state, case in states.items():
                if case[0]:
                    key = (row.cause, row.detail, state)
                    parts[key] = parts.get(key, 0.0) + own.of_input(*case)
        parts["output", "", "output"] = parts.get(("output", "", "output"), 0.0) + out
    for event in record.of("model_error"):
        if "call" in event:  # under way when the run ended: billed, and nobody knows how much
            who = (int(event["call"]), int(event["turn"]), int(event["depth"]))
            model = models.get((event["request"], event.get("node", "0")), "")
            lines.append(CallPrice(*who, model, None, None, None, None, None, None))
    how = f"cache simulated ({report.rules.name})" if report is not None else "cached tokens as reported"
    causes: dict[str, float] = {}
    for (cause, _, _), dollars in parts.items():
        causes[cause] = causes.get(cause, 0.0) + dollars
    ordered = dict(sorted(causes.items(), key=lambda item: -item[1]))
    return Bill(tuple(sorted(lines, key=lambda line: line.call)), ordered, how, parts)


def _cases(own: Price, usage: Usage, rows: Sequence[Row], simulated: tuple[int, int] | None) -> list[tuple[int, int]]:
    """What may have been read from the cache and written to it: one case, or those at both ends."""
    if simulated is not None:
        return [simulated]
    total, resent = sum(r.tokens for r in rows), sum(r.resent for r in rows)
    if usage.cache_read_tokens is not None:
        reads = [usage.cache_read_tokens]
    else:
        reads = [0] if own.cached is None else [0, resent]
    free = own.cache_write is None or own.cache_write == own.input
    known = usage.cache_write_tokens
    writes = [known] if known is not None else [0] if free else None
    return [(hit, written) for hit in reads for written in writes or (0, total - hit)]


def _table(prices: Price | Mapping[str, Price] | None, models: set[str]) -> dict[str, Price]:
    """The price of each model; raises `PriceError` where one has none."""
    if prices is None:
        table = {model: found for model in models if (found := known_price(model)) is not None}
    else:
        table = {ANY: prices} if isinstance(prices, Price) else dict(prices)
    if missing := sorted(models - set(table)) if ANY not in table else []:
        raise PriceError(
            f"no price for {', '.join(m or '(no name)' for m in missing)}: add it, or {ANY!r} for any other"
        )
    return table
