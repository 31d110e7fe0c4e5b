"""How fast the local model generates with 1, 4 and 8 episodes side by side.

    python benchmarks/local_model.py [--model local] [--slots 1 4 8] [--tokens 60] [--json FILE]

Each number of slots is measured in a process of its own: as many calls as slots at once, each with a prompt of its own
and `--tokens` tokens of reply.  The figure is the sum of generated tokens over the wall time, prompts included and
loading excluded.  Measure on a quiet machine: one busy neighbour halves it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rlm_loop.messages import Prompt
from rlm_loop.models import LocalModel


def measure(name: str, slots: int, tokens: int) -> dict[str, float]:
    """Generated tokens, seconds, and their ratio, for `slots` calls at once."""
    model = LocalModel(name, slots=slots, context_size=4096)
    model.load()

    def ask(number: int) -> int:
        question = f"Write Python function number {number}: it returns the primes below n. Comment each line."
        usage = model.complete(Prompt.ask(question), max_tokens=tokens).usage
        return (usage and usage.output_tokens) or 0

    begin = time.perf_counter()
    with ThreadPoolExecutor(slots) as pool:
        generated = sum(pool.map(ask, range(slots)))
    seconds = time.perf_counter() - begin
    return {"slots": slots, "tokens": generated, "seconds": seconds, "tokens_per_second": generated / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="local")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--tokens", type=int, default=60, help="of each reply (default 60)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    if len(options.slots) == 1:
        rows = [measure(options.model, options.slots[0], options.tokens)]
    else:
        rows = []
        for slots in options.slots:
            own = [sys.executable, __file__, "--model", options.model, "--slots", str(slots)]
            shown = subprocess.run([*own, "--tokens", str(options.tokens)], check=True, capture_output=True, text=True)
            rows += [json.loads(line) for line in shown.stdout.splitlines() if line.startswith("{")]
    for row in rows:
        line = f"{row['slots']:>3} slots: {row['tokens_per_second']:6.1f} tokens/s"
        print(json.dumps(row) if len(rows) == 1 else line)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
