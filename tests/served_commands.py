"""A command that serves until it is interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable


def interrupted(number: signal.Signals, look: Callable[[str], None], *argv: str) -> tuple[int, str, str]:
    """Look at the address that the command prints, end it by a signal; its exit code, output and further notes."""
    words, pipe = [sys.executable, "-m", "rlm_loop.cli.main", *argv], subprocess.PIPE
    env = {**os.environ, "COLUMNS": "1000", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=env)
    try:
        assert process.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/\S*", process.stderr.readline())
        assert address is not None
        look(address[0])
        process.send_signal(number)
        shown, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    return process.returncode, shown, said
