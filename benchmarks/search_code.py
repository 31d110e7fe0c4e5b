"""What `search_code` takes beside ripgrep itself, in a repository of 5,000 files.

    python benchmarks/search_code.py [--files 5000] [--times 15] [--json FILE]

The repository is made in a temporary folder (Python-like text, some 3 KB a file, 50 files a folder).  For each query
three things are timed in turn, so that a busy neighbour meets all of them: ripgrep alone (the program started from
here with the same options, its output read and thrown away), our search with ripgrep, and our search in Python.  A
query that is found only when case is ignored needs ripgrep twice, and is compared with both runs.  Figures are medians
in milliseconds; the ratio is the median of the ratios of each round.  Without ripgrep only the last is measured.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rlm_loop.tools.code import ripgrep
from rlm_loop.tools.code.searching import find

WORDS = [
    *("parse", "render", "encode", "decode", "token", "stream", "buffer", "cursor", "window"),
    *("cache", "index", "batch", "merge", "split", "field", "value"),
]

QUERIES = {
    "one line in one file": "the_only_one_of_its_kind",
    "some lines": "special_case_7",
    "nearly every file": "return",
    "nothing": "nowhere_to_be_found",
    "in other letters only": "THE_ONLY_ONE_OF_ITS_KIND",
}


def make(root: Path, files: int) -> int:
    """A repository, always the same; returns its size in bytes."""
    pick = random.Random(0)
    size = 0
    for number in range(files):
        lines = ["from __future__ import annotations", ""]
        for function in range(12):
            name = "_".join(pick.sample(WORDS, 3))
            if pick.random() < 0.002:
                name = f"special_case_{pick.randrange(10)}"
            lines += [f"def {name}_{function}({pick.choice(WORDS)}: int, {pick.choice('abc')}: str = '') -> int:"]
            lines += [
                f"    {pick.choice(WORDS)} = {pick.choice(WORDS)}({pick.randrange(999)})  # {pick.choice(WORDS)}"
            ] * 3
            lines += [f"    return {pick.choice(WORDS)} + {pick.randrange(999)}", "", ""]
        if number == files // 2:
            lines.append("the_only_one_of_its_kind = True")
        folder = root / f"package_{number // 500}" / f"part_{number % 500 // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(lines)
        (folder / f"module_{number}.py").write_text(text)
        size += len(text)
    return size


def plain(program: str, root: Path, query: str, runs: int) -> None:
    for fold in [False, True][:runs]:
        subprocess.run(ripgrep.command(program, query, fold=fold), cwd=root, stdout=subprocess.PIPE, check=False)


def seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--times", type=int, default=15, help="rounds that count (one more goes before them)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    program = ripgrep.installed()
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        size = make(root, options.files)
        print(f"{options.files} files, {size / 1e6:.1f} MB; {program or 'ripgrep is not installed'}")
        print(f"{'':<24}{'lines':>8}{'ripgrep':>10}{'ours':>10}{'ratio':>8}{'Python':>10}")
        for label, query in QUERIES.items():
            found = find(root, query, program=None)
            runs = 2 if not found.total or query not in found.hits[0].line else 1
            rounds: list[tuple[float, float, float]] = []
            for _ in range(options.times + 1):
                alone = seconds(lambda: plain(program, root, query, runs)) if program else float("nan")  # noqa: B023
                ours = seconds(lambda: find(root, query)) if program else float("nan")  # noqa: B023
                rounds.append((alone, ours, seconds(lambda: find(root, query, program=None))))  # noqa: B023
            counted = rounds[1:]
            row = {
                "lines": float(found.total),
                "ripgrep": 1000 * statistics.median(r[0] for r in counted),
                "ours": 1000 * statistics.median(r[1] for r in counted),
                "ratio": statistics.median(r[1] / r[0] for r in counted),
                "python": 1000 * statistics.median(r[2] for r in counted),
            }
            rows[label] = row
            print(
                f"{label:<24}{found.total:>8}{row['ripgrep']:>10.1f}{row['ours']:>10.1f}"
                f"{row['ratio']:>8.2f}{row['python']:>10.1f}"
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
