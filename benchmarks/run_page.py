"""How long the page of a long run takes: to be made, and to be opened by headless Chromium.

    python benchmarks/run_page.py [--turns 2000] [--repeat 3]

`opened` is the browser's own figure, from the start of the navigation to the end of its load event; `first paint` and
`laid out` are those of its first picture and of one more frame after the load.  The file's size is in bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from rlm_loop.report.run import run_page

TESTS = Path(__file__).parents[1] / "tests"
TIMES = """(async () => {
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const end = performance.now(), [load] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return {opened: load.loadEventEnd, parsed: load.domInteractive, "first paint": paint ? paint.startTime : null,
          "laid out": end};
})()"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    sys.path[:0] = [str(TESTS), str(TESTS / "report")]  # where the made run and the driver of the browser are
    from browser import Browser
    from made_run import long_run

    with tempfile.TemporaryDirectory() as folder:
        trace, page = long_run(Path(folder) / "run.jsonl", given.turns), Path(folder) / "run.html"
        began = time.perf_counter()
        page.write_text(run_page(trace), encoding="utf-8")
        made = time.perf_counter() - began
        size, written = trace.stat().st_size, page.stat().st_size
        print(f"{given.turns:,} turns: trace {size:,} bytes, page {written:,} bytes, made in {made:.2f} s")
        with Browser(Path(folder) / "profile") as browser:
            for _ in range(given.repeat):
                browser.open(page)
                print(json.dumps({name: ms and round(ms / 1000, 3) for name, ms in browser.value(TIMES).items()}))


if __name__ == "__main__":
    main()
