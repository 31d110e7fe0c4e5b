"""What attribution costs: the time to charge a prompt's tokens to their causes, as a share of a local model call.

    python benchmarks/attribution.py [--model local] [--turns 6] [--tokens 60] [--json FILE]

One conversation that grows by a reply and an output a turn, with tools where the template takes them.  Each turn is
timed twice: `measure` (rendering, tokenizing, charging) and the ledger's rows on one side, the call on the other.  The
target is 3 % at most.  Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rlm_loop.accounting.ledger import Ledger, attribute
from rlm_loop.messages import Message, Prompt, Span, say
from rlm_loop.models import LocalModel

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look a word up in the index.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}


def measure(name: str, turns: int, tokens: int) -> list[dict[str, float]]:
    """One row a turn: prompt tokens, seconds of attribution, seconds of the call."""
    model = LocalModel(name, context_size=8192)
    tools = (TOOL,) if model.load().takes_tools else ()
    brief = say("system", "You are a careful assistant who writes Python and explains it. " * 8, "system")
    prompt = Prompt((brief, say("user", "Write functions on primes, one a turn.", "task")), tools)
    model.measure(Prompt.ask("warm up"))
    model.complete(Prompt.ask("warm up"), max_tokens=1)
    ledger, rows = Ledger(), list[dict[str, float]]()
    for turn in range(1, turns + 1):
        begin = time.perf_counter()
        parts = model.measure(prompt)
        counted = time.perf_counter() - begin
        reply = model.complete(prompt, max_tokens=tokens)
        begin = time.perf_counter()
        found = attribute(prompt, parts, reply.usage)
        call = ledger.charge(found.parts, found.usage, turn=turn, exact=found.exact, sent_messages=2 * turn - 2)
        assert len(call.rows)  # they are worked out when they are first read
        counted += time.perf_counter() - begin
        assert call.exact, "the local model reported another number than was counted"
        rows.append(
            {"turn": turn, "prompt_tokens": float(found.counted or 0), "attribution": counted, "call": reply.seconds}
        )
        shown = (Span("primes: " + "2 3 5 7 11 13 " * 20, "repl_output"), Span("\nGo on.", "scaffold:nudge"))
        prompt += (say("assistant", reply.text or "...", "assistant", turn=turn), Message("user", shown, turn=turn))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="local")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=60, help="of each reply (default 60)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    rows = measure(options.model, options.turns, options.tokens)
    for row in rows:
        print(
            f"turn {row['turn']:2.0f}: {row['prompt_tokens']:6,.0f} prompt tokens, attribution "
            f"{1000 * row['attribution']:7.1f} ms, call {row['call']:6.2f} s ({row['attribution'] / row['call']:.2%})"
        )
    counted, called = sum(r["attribution"] for r in rows), sum(r["call"] for r in rows)
    print(f"all turns: {counted:.3f} s of {called:.2f} s, {counted / called:.2%} (target: at most 3 %)")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
