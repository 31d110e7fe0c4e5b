"""Marks for tests that need something of the machine."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes and limits are Linux's")
through_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the protocol's socket in /proc")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="for root only")
main_thread = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)
#: What of the default kind only the sandbox can do: in `hardened` a cell does not see its own descriptors and /dev/shm.
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap")
