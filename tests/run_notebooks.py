"""Execute notebooks as a reader would, in a copy, so that the files here are not changed.

    python tests/run_notebooks.py notebooks

A notebook reads recorded results by default; none may need the network or a model.  No notebook: nothing to do.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path


def execute(path: Path, scratch: Path) -> None:
    """Run every cell in the notebook's own folder; raises on the first cell that raises."""
    import nbformat
    from nbclient import NotebookClient

    copy = scratch / path.name
    shutil.copyfile(path, copy)
    notebook = nbformat.read(copy, as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()


def main(folder: Path) -> int:
    os.environ["PIP_NO_INDEX"] = os.environ["HF_HUB_OFFLINE"] = "1"
    found = sorted(p for p in folder.glob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    with tempfile.TemporaryDirectory() as scratch:
        for path in found:
            begin = time.monotonic()
            try:
                execute(path, Path(scratch))
            except Exception as error:
                print(f"{path}: FAILED\n{error}", file=sys.stderr)
                return 1
            print(f"{path}: executed in {time.monotonic() - begin:.1f} s")
    if not found:
        print(f"{folder}: no notebooks")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "notebooks")))
