"""A disk that another run's cell has filled ends this run in words, with what it had done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: In a process of its own: no file of it may grow any more once the model is asked, as on a full disk.
SCRIPT = """
import json, os, resource, sys, tempfile
from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel

def full(prompt):
    size = os.path.getsize(trace) if os.path.exists(trace) else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return reply

trace, first, reply, keep, context = json.loads(sys.argv[1])
model = ScriptedModel([*([first] if first else []), full, "done"])
try:
    ToolLoopAgent(model=model, repl="plain").run("Q?", trace=trace if keep else None, context=context and "x" * context)
except Exception as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    outcome = error.outcome
    print(json.dumps([type(error).__name__, str(error), outcome.stop, outcome.steps, outcome.usage.calls]))
else:
    print(json.dumps(["", "", "", 0, 0]))
"""
CELL = "```python\nprint(1)\n```"


@pytest.mark.parametrize(
    ("first", "keep", "context", "kind", "says", "steps"),
    [
        (CELL, True, 0, "TraceUnwritable", "cannot write the trace", 1),
        ("", False, 0, "ReplError", "the REPL's files cannot be written", 0),
        ("", False, 3_000_000, "ReplError", "the REPL's files cannot be written", 0),
    ],
)
def test_a_full_disk_is_told_and_nothing_is_lost(
    tmp_path: Path, first: str, keep: bool, context: int, kind: str, says: str, steps: int
) -> None:
    given = json.dumps([str(tmp_path / "t.jsonl"), first, CELL, keep, context])
    done = subprocess.run([sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    name, told, stop, taken, calls = json.loads(done.stdout)
    assert name == kind, told
    assert says in told
    assert "free some space" in told
    assert (stop, taken) == ("failed", steps)
    assert calls == steps + 1
