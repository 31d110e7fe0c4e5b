"""How long `rlm-loop view` takes to show a folder of many episodes, and how much memory it takes.

    python benchmarks/view.py [--episodes 5000] [--kinds study packed runs] [--repeat 3]

The episodes are copies of ones that a scripted model ran (two turns each), with names and figures of their own: as a
study with a trace file an episode, the same packed as `study.archive.export` packs it, and as runs that belong to no
study.  For each kind, in seconds: from the start of the command until it answers at all (`up`); the table's data, for
which the folder is read (`rows`), and the same once more (`again`); in headless Chromium from the start of the
navigation to the first picture (`first paint`) and to the first lines of the table (`lines`); and one episode.  Each is
the median of the repetitions, for each of which the command is started anew.  `memory` is the server's largest resident
set in MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rlm_loop import Suite, Task, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study
from rlm_loop.study.plan.grid import trace_path
from rlm_loop.study.store.archive import export

TESTS = Path(__file__).parents[1] / "tests"
ARMS = [f"arm-{k}" for k in range(10)]
#: The browser's own figures of the first paint, and when the first lines of the table are there.
PAINT = """(async () => {
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0];
  while (!painted() || !document.querySelector("#rows tr")) await new Promise(done => setTimeout(done, 5));
  return [painted().startTime / 1000, performance.now() / 1000];
})()"""


def made(folder: Path, episodes: int) -> None:
    """A study of so many episodes: rows and traces are those of one that ran, under other names."""
    replies = ["I look first.\n```python\nprint(sum(range(10)))\n```", "```python\nfinal_answer = 45\n```"]
    agents = {arm: ToolLoopAgent(model=ScriptedModel(replies)) for arm in ARMS}
    Study("bench", agents, Suite("numbers", [Task("t0", "What is the sum?" + " Think." * 200, 45)])).run(folder, False)
    path, draw = folder / "results.jsonl", random.Random(7)
    rows = [row for line in path.read_text("utf-8").splitlines() if "arm" in (row := json.loads(line))]
    lock = json.loads((folder / "study.json").read_text("utf-8"))
    names = [f"task-{n}" for n in range(-(-episodes // len(rows)))]
    lines: list[str] = []
    for name in names:
        for row in rows:
            trace = trace_path(row["arm"], row["model"], "numbers", name, row["seed"])
            text = (folder / row["trace"]).read_text("utf-8").replace('"task":"t0"', f'"task":"{name}"')
            run = f"r{draw.getrandbits(40):010x}"
            (folder / trace).write_text(text.replace(row["trace_run"], run), "utf-8")
            figures = {"input_tokens": draw.randrange(200, 9000), "output_tokens": draw.randrange(20, 900)}
            judged = {"resolved": draw.random() < 0.5, "task": name, "trace": trace, "trace_run": run}
            lines.append(json.dumps({**row, **figures, **judged}))
    for row in rows:
        (folder / row["trace"]).unlink()
    path.write_text("\n".join(lines[:episodes]) + "\n", "utf-8")
    digest = lock["tasks"]["numbers"]["t0"]
    (folder / "study.json").write_text(
        json.dumps({**lock, "tasks": {"numbers": dict.fromkeys(names, digest)}}), "utf-8"
    )


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, int, float]]:
    """The command over a folder: its address, its process, and the seconds until it listened."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "rlm_loop.cli.main", "view", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = re.search(r"http://\S+", process.stderr.readline())
    assert told is not None
    try:
        yield told[0], process.pid, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def get(url: str) -> tuple[float, bytes]:
    """The seconds that an answer took, and its bytes."""
    began = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        body = answer.read()
    return time.perf_counter() - began, body


def peak(process: int) -> float:
    """The largest resident set of a process so far, in MiB; nothing where the system does not say."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        found = None
    return int(found[1]) / 1024 if found else float("nan")


def measured(folder: Path, profile: Path) -> dict[str, float]:
    """One start of the command and what is asked of it."""
    from browser import Browser

    with served(folder) as (url, process, up):
        first, body = get(f"{url}rows.json")
        again, _ = get(f"{url}rows.json")
        rows = json.loads(body)["rows"]
        episode, _ = get(f"{url}e/{rows[len(rows) // 2][0]}.html")
        with Browser(profile) as browser:
            browser.open(url)
            paint, lines = browser.value(PAINT)
        return {
            "up": up,
            "rows": first,
            "again": again,
            "MB": len(body) / 1e6,
            "first paint": paint,
            "lines": lines,
            "episode": episode,
            "memory": peak(process),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--kinds", nargs="+", default=["study", "packed", "runs"], choices=["study", "packed", "runs"])
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    sys.path.insert(0, str(TESTS))  # where the driver of the browser is
    with tempfile.TemporaryDirectory() as at:
        study, packed, runs = (Path(at) / kind for kind in ("study", "packed", "runs"))
        made(study, given.episodes)
        if "packed" in given.kinds:
            export(study, packed)
        for kind in given.kinds:
            if kind == "runs":  # last, since it takes the traces away from the study
                (study / "traces").rename(runs)
            folder = {"study": study, "packed": packed, "runs": runs}[kind]
            told(kind, given.episodes, [measured(folder, Path(at) / f"{kind}-{n}") for n in range(given.repeat)])


def told(kind: str, episodes: int, all_of: Sequence[Mapping[str, float]]) -> None:
    """Print the median of each figure."""
    middle = {name: round(statistics.median(one[name] for one in all_of), 3) for name in all_of[0]}
    print(f"{kind}, {episodes:,} episodes: {json.dumps(middle)}", flush=True)


if __name__ == "__main__":
    main()
