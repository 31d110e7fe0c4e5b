"""What a workspace of a large repository costs, beside `git clone --shared` and git's own commands, in one run.

    python benchmarks/workspace.py [--files 5000] [--megabytes 100] [--rounds 3] [--repository PATH]

Makes a repository of words (or takes one that is there) and times, in turn and best of the rounds: the clone; a
workspace at its commit; one of the files as they lie; then in the workspace a snapshot without a change and after one,
the diff, a fork.  git's own counterparts stand beside it: `git status` for the snapshot, `git diff` for the diff.
Processor time is that of all processes together.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlm_loop.workspace import Workspace

WHO = ("-c", "user.name=a", "-c", "user.email=b")


def git(*arguments: str, cwd: Path) -> None:
    subprocess.run(["git", *WHO, *arguments], cwd=cwd, check=True, capture_output=True)


def make(root: Path, files: int, size: int) -> None:
    """A packed repository of one commit, with files of lines of words, which compress as code does."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz_", k=draw.randint(2, 11))) for _ in range(4000)]
    lines = ["    " * draw.randint(0, 3) + " ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(20_000)]
    for number in range(files):
        place = root / f"pkg{number % 50}" / f"part{number % 7}" / f"m{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        text = ""
        while len(text) < size:
            text += "\n".join(draw.choices(lines, k=100)) + "\n"
        place.write_text(text[:size])
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["repack", "-adq", "--window=2"]):
        git(*arguments, cwd=root)


class Times:
    """The best wall time of each step, and the processor time of that round."""

    def __init__(self) -> None:
        self.best: dict[str, tuple[float, float]] = {}

    def of(self, name: str, work: Callable[[], Any]) -> Any:
        wall, busy = time.perf_counter(), _processor()
        result = work()
        spent = (time.perf_counter() - wall, _processor() - busy)
        self.best[name] = min(self.best.get(name, spent), spent)
        return result

    def show(self, name: str, beside: str = "") -> None:
        wall, busy = self.best[name]
        ratio = f"   {wall / self.best[beside][0]:5.2f} x {beside}" if beside else ""
        print(f"{name:34} {wall * 1000:8.0f} ms, processor {busy * 1000:6.0f} ms{ratio}")


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repository", type=Path)
    options = parser.parse_args()
    times = Times()
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        user = options.repository or top / "user"
        if options.repository is None:
            user.mkdir()
            make(user, options.files, int(options.megabytes * 1e6 / options.files))
        git("status", cwd=user)
        clone = top / "clone"
        for _ in range(options.rounds):
            times.of("git clone --shared", lambda: git("clone", "-q", "--shared", str(user), str(clone), cwd=top))
            with times.of("workspace at a commit", lambda: Workspace(user, commit="HEAD")) as space:
                changed = next(path for path in sorted(space.root.rglob("*.py")))
                time.sleep(0.1)
                space.snapshot()
                times.of("git status", lambda: git("status", "--porcelain", cwd=clone))
                times.of("snapshot, nothing changed", space.snapshot)
                for root in (clone, space.root):
                    (root / changed.relative_to(space.root)).write_text("changed\n")
                times.of("snapshot, one file changed", space.snapshot)
                times.of("git diff", lambda: git("diff", cwd=clone))
                times.of("diff", space.diff)
                times.of("patch, checked", lambda: space.patch(tests=True))
                times.of("restore", lambda: space.restore(space.base))
                times.of("fork", space.fork).close()
            times.of("workspace of files as they lie", lambda: Workspace(user)).close()
            shutil.rmtree(clone)
    for name, beside in (
        ("git clone --shared", ""),
        ("workspace at a commit", "git clone --shared"),
        ("workspace of files as they lie", "git clone --shared"),
        ("fork", "git clone --shared"),
        ("git status", ""),
        ("snapshot, nothing changed", "git status"),
        ("snapshot, one file changed", "git status"),
        ("restore", "git status"),
        ("git diff", ""),
        ("diff", "git diff"),
        ("patch, checked", "git diff"),
    ):
        times.show(name, beside)


if __name__ == "__main__":
    main()
