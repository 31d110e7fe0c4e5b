"""What needs neither images nor a model: whether the arms are fair, what the harness is told, what it would cost.

    python experiments/swebench_lite/dry_run.py                                    # on stand-ins for the ten instances
    python experiments/swebench_lite/dry_run.py --instances lite --repos ~/repos   # on the real ones
    python experiments/swebench_lite/dry_run.py --models openai/gpt-5-nano,ollama/qwen3-coder:30b

A stand-in has an instance's id and repository, a folder of a few files, and an issue of the median length of SWE-bench
Lite's (some 1,300 characters).  Nothing of it says anything about the real tasks.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))  # its own study

from study import INSTANCES, study

from rlm_loop.study import fairness_check
from rlm_loop.study.run.estimate import estimates
from rlm_loop.tasks.swebench.harness import harness_command

ISSUE = ("The function returns a wrong value for an empty input, where the documentation promises a copy. " * 14)[:1300]


def stand_ins(folder: Path) -> tuple[str, str]:
    """A file of ten instances and a folder of their two repositories, made below `folder`."""
    repos = folder / "repos"
    commits = {name: _repository(repos / name.replace("/", "__")) for name in ("astropy/astropy", "django/django")}
    lines: list[dict[str, Any]] = []
    for name in INSTANCES:
        repo = name.rpartition("-")[0].replace("__", "/")
        lines.append(
            {"instance_id": name, "repo": repo, "base_commit": commits[repo], "problem_statement": ISSUE}
            | {"FAIL_TO_PASS": ["tests/test_values.py::test_empty"], "PASS_TO_PASS": []}
        )
    file = folder / "instances.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(file), str(repos)


def _repository(place: Path) -> str:
    for name in ("package/values.py", "package/__init__.py", "package/tables.py", "tests/test_values.py", "setup.py"):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'"""{name}."""\n\n\ndef first(values):\n    return values[0]\n', encoding="utf-8")
    who = ["-c", "user.name=stand-in", "-c", "user.email=stand-in@localhost", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "stand-in"]):
        subprocess.run(["git", *command], cwd=place, check=True)
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=place, check=True, capture_output=True, text=True
    ).stdout.strip()


def said(models: list[str], instances: str, repos: str | None) -> tuple[list[str], bool]:
    """The lines of a dry run, and whether all of it is as it should be."""
    made = study(model=models[0], instances=instances, repos=repos, clone=False)
    fair = fairness_check(made)
    differing = sorted({d.factor for d in fair.differences})
    lines = [f"{len(made.episodes())} episodes: {', '.join(next(iter(made.agents().values())))}"]
    lines.append(f"first requests {'differ as declared' if fair.fair else 'DIFFER OTHERWISE'}: {', '.join(differing)}")
    there = {task.id for suite in made.suites for task in suite}
    lines += [f"MISSING: {name}" for name in INSTANCES if name not in there]
    command = harness_command("lean.jsonl", "SWE-bench/SWE-bench_Lite", INSTANCES, run_id="swebench_lite-lean")
    lines.append(f"the harness, for one arm: {shlex.join(['python', *command[1:]])}")
    for name in models:
        lines += map(str, estimates(study(model=name, instances=instances, repos=repos, clone=False)))
    return lines, fair.fair and len(there) == len(INSTANCES)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default="ollama/qwen3-coder:30b", help="names, with commas")
    parser.add_argument("--instances", default="", help="a published set or a file; default: stand-ins")
    parser.add_argument("--repos", help="a folder of clones, with --instances")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swebench-lite-") as made:
        place = (options.instances, options.repos) if options.instances else stand_ins(Path(made))
        lines, right = said(options.models.split(","), *place)
    print("\n".join(lines))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
