"""A command in a fresh copy of the folder, which is its working folder and gone with it: `python serve.py COMMAND ...`.

A run may write through its server; no other run finds that.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from folder import write

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="shop-") as made:
        write(Path(made))
        sys.exit(subprocess.run(sys.argv[1:], cwd=made, check=False).returncode)
