"""How long coverage takes: 10 MB of context, 1 MB of outputs (slices, picked lines, repeated text, noise).

python benchmarks/coverage.py [megabytes of context]
"""

from __future__ import annotations

import random
import sys
import time

from rlm_loop.study.coverage.place import places_of


def main(megabytes: float) -> None:
    draw = random.Random(0)
    size = int(megabytes * 1_000_000)
    log = [
        f"2026-03-04T12:{i % 60:02d}:{i % 59:02d} host{i % 7} status=ok user={draw.randrange(10**6)} took {i % 97} ms\n"
        for i in range(size // 140)
    ]
    words = ["alpha", "beta", "gamma", "delta", "sigma", "omega", "kappa", "theta"]
    prose = [" ".join(draw.choice(words) for _ in range(11)) + ".\n" for _ in range(size // 140)]
    same = ["the same line again and again, as in many logs\n"] * (size // 400)
    context = "".join([*log, *prose, *same])[:size]
    outputs = {
        "slices": [context[a : a + 5000] for a in range(0, len(context), max(1, len(context) // 100))][:100],
        "picked lines": ["".join(draw.choice(log) for _ in range(60)) for _ in range(80)],
        "repeated text": [same[0] * 100 for _ in range(20)],
        "noise": ["".join(draw.choice("abcdefgh ") for _ in range(5000)) for _ in range(20)],
    }
    for name, texts in {**outputs, "all of these": [t for ts in outputs.values() for t in ts]}.items():
        begin, busy = time.perf_counter(), time.process_time()
        places_of(context, texts)
        shown = sum(map(len, texts)) / 1e6
        print(
            f"{name:14} {shown:5.2f} MB in {len(context) / 1e6:.0f} MB: "
            f"{time.perf_counter() - begin:.2f} s, {time.process_time() - busy:.2f} s of processor time"
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
