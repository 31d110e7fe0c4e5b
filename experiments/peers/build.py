"""Make the environments of the other frameworks: each of its own, from the package index, with pinned versions.

    python experiments/peers/build.py [--peers rlms,dspy_rlm] [--cache FOLDER]

What is there already is kept.  A framework that cannot be installed is named with the reason, and the others go on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from contenders import HERE, Contender, chosen
from platformdirs import user_cache_path

sys.path.append(str(HERE.parents[1]))  # it is not installed

from experiments.robustness.peers import environment_in

#: The robustness suite's folder: what both need is installed once.
CACHE = user_cache_path("rlm-loop") / "robustness"


def python_of(one: Contender, cache: Path) -> Path:
    """The Python of a framework's environment, made where it is missing.  Raises `RuntimeError` where it cannot be."""
    return environment_in(cache / one.environment, one.packages, one.pins) / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    options = parser.parse_args()
    for one in chosen(options.peers):
        if not one.ours:
            try:
                print(f"{one.name}: {python_of(one, options.cache)}")
            except RuntimeError as error:
                print(f"{one.name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
