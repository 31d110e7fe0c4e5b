"""Execute notebooks as a reader would, in a copy, so that the files here are not changed.

    python tests/run_notebooks.py notebooks              # from recorded results, as CI does
    python tests/run_notebooks.py notebooks --save       # and write what the cells showed into the files
    python tests/run_notebooks.py notebooks --live 01    # ask the real model, in the notebooks whose names have 01

A notebook reads recorded results by default; none may then need the network or a model.  What a cell shows has to be of
the kinds that are committed with it, so that a page which is read without being run is not out of date.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

#: What a notebook looks at: the model that it asks; without one it reads what was recorded.
SWITCH = "RLM_LOOP_MODEL"
#: Of what a cell shows, that which needs the kernel that showed it.
ALIVE = "application/vnd.jupyter.widget-view+json"


class Stale(Exception):
    """What is committed is not what the cells show."""


def execute(path: Path, scratch: Path, timeout: int | None) -> tuple[Any, float]:
    """The notebook with every cell run in its own folder, each within `timeout` seconds, and the seconds it took."""
    import nbformat
    from nbclient import NotebookClient

    begin, copy = time.monotonic(), scratch / path.name
    shutil.copyfile(path, copy)
    notebook = nbformat.read(copy, as_version=4)
    own = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=timeout, kernel_name="python3", record_timing=False, resources=own).execute()
    return notebook, time.monotonic() - begin


def kinds(cell: Any) -> list[str]:
    """What a cell shows: printed text (which may come in pieces), pictures, and other values; not in which formats."""
    shown: list[str] = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        picture = any(kind.startswith("image/") for kind in data)
        shown.append("a picture" if picture else "a value" if data else output.get("name", output["output_type"]))
    return [kind for n, kind in enumerate(shown) if kind not in ("stdout", "stderr") or kind not in shown[:n]]


def compare(path: Path, executed: Any) -> None:
    """Raises `Stale` where a cell of the file shows other kinds of things than it did now.

    A cell with the tag `varies` may: what it shows depends on the version of Python.
    """
    import nbformat

    committed = nbformat.read(path, as_version=4)
    for number, (old, new) in enumerate(zip(committed.cells, executed.cells, strict=True), 1):
        if kinds(old) != kinds(new) and "varies" not in old.metadata.get("tags", ()):
            shows, shown = (", ".join(kinds(cell)) or "nothing" for cell in (new, old))
            again = f"python tests/run_notebooks.py {path.parent} --save {path.stem}"
            raise Stale(f"cell {number} shows {shows}, and {shown} is committed: {again}")


def save(path: Path, executed: Any) -> None:
    """Write the notebook with what it showed, but no widgets and nothing that differs from machine to machine."""
    import nbformat

    for output in (output for cell in executed.cells for output in cell.get("outputs", ())):
        output.get("data", {}).pop(ALIVE, None)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    executed.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(executed, path)


def main(folder: Path, *, names: Sequence[str] = (), keep: bool = False, live: bool = False) -> int:
    os.environ.pop(SWITCH, None)
    os.environ.update({SWITCH: "local"} if live else {"PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"})
    os.environ["RLM_LOOP_LOG"] = "off"
    os.environ["PYTHONWARNINGS"] = "ignore:cells are not isolated:RuntimeWarning"  # true of this machine, not of a cell
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # for `!rlm-loop`
    there = sorted(p for p in folder.glob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    found = [p for p in there if not names or any(name in p.stem for name in names)]
    jobs = 1 if keep or live else min(len(found), os.cpu_count() or 1)  # a model is asked by one at a time
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(max(1, jobs)) as pool:
        run = partial(execute, scratch=Path(scratch), timeout=None if keep or live else 300)
        results = pool.map(run, found)
        for path in found:
            try:
                executed, seconds = next(results)
                if keep:
                    save(path, executed)
                elif not live:
                    compare(path, executed)
            except Exception as error:
                print(f"{path}: FAILED\n{error}", file=sys.stderr)
                pool.shutdown(cancel_futures=True)
                return 1
            print(f"{path}: executed in {seconds:.1f} s", flush=True)
    if not found:
        print(f"{folder}: no notebooks" + (f" with {' or '.join(names)} in their names" if names else ""))
        return 1 if names else 0
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Execute notebooks.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("notebooks"))
    parser.add_argument("names", nargs="*", help="parts of the names of those that are wanted; default all")
    parser.add_argument("--save", action="store_true", help="write what the cells showed into the files")
    parser.add_argument("--live", action="store_true", help=f"ask the local model ({SWITCH}); nothing is compared")
    given = parser.parse_intermixed_args()
    sys.exit(main(given.folder, names=given.names, keep=given.save, live=given.live))
