"""How long `import rlm_loop` takes, beside the packages a user might otherwise import.

    python benchmarks/import_time.py [--times 7] [--json FILE]

Each figure is the median over fresh interpreters of the time that the import statement alone took; one
interpreter more runs first and is not counted, so that byte code is written and files are cached.  Packages
that are not installed are said to be absent; install them (in any environment) to compare.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PEERS = ("smolagents", "litellm", "dspy", "rlm", "inspect_ai", "pydantic_ai", "minisweagent", "langchain", "openai")
CODE = """
import time
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
import sys
print(len(sys.modules))
"""


def seconds_to_import(name: str, times: int) -> tuple[float, int] | None:
    """Median seconds, and the number of modules loaded afterwards; `None` where the import fails."""
    # Byte code is what a user has; some containers forbid writing it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    taken: list[float] = []
    modules = 0
    for _ in range(times + 1):
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(name=name)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
        )
        if done.returncode:
            return None
        seconds, loaded = done.stdout.split()[-2:]
        taken.append(float(seconds))
        modules = int(loaded)
    return statistics.median(taken[1:]), modules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=7, help="fresh interpreters a package (default 7)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    rows: dict[str, dict[str, float | int | None]] = {}
    print(f"{'package':<24}{'ms':>8}{'modules':>10}")
    for name in ("rlm_loop", "rlm_loop.agents", *PEERS):
        if name in PEERS and importlib.util.find_spec(name) is None:
            print(f"{name:<24}{'absent':>8}")
            rows[name] = {"seconds": None, "modules": None}
            continue
        measured = seconds_to_import(name, options.times)
        if measured is None:
            print(f"{name:<24}{'failed':>8}")
            continue
        rows[name] = {"seconds": measured[0], "modules": measured[1]}
        print(f"{name:<24}{1000 * measured[0]:>8.1f}{measured[1]:>10}")
    if options.json:
        options.json.write_text(json.dumps({"python": sys.version.split()[0], "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
