"""The throw-away git folder that every agent works in, the task, and the memory file of the condition `memory`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

TASK = "Running `python3 check.py` fails. Find the mistake in shop/prices.py, fix it, and run the check again."
OTHER_TASK = (
    "`python3 check.py` does not pass. See why a price comes out wrong, mend it, and show that the check passes."
)
PRICES, CHECK = "shop/prices.py", "python3 check.py"
BUGGY, FIXED = "return price + discount", "return price - discount"
LINE = 6  # of the mistake
PARTS = 12

#: What an agent reads on its own at the start, under the name that it looks for.
MEMORY = "# House rules of the shop\n\n" + "\n".join(
    f"- Marked rule {number}: every price is a whole number of cents, and module {number} says so in its docstring."
    for number in range(1, 31)
)

_PRICES = f'''"""Prices after a discount."""


def reduced(price: int, discount: int) -> int:
    """The price that is left, in cents."""
    {BUGGY}
'''
_CHECK = '''"""Fails where a price is wrong."""

from shop.prices import reduced

found = reduced(500, 120)
assert found == 380, f"500 less 120 is 380, not {found}"
print("the check passes")
'''


def parts() -> list[str]:
    """Files that have nothing to do with the task, all of one size."""
    return [f"shop/part_{number:02d}.py" for number in range(1, PARTS + 1)]


def make(folder: Path, *, memory: str = "") -> None:
    """Write the files and commit them, as nobody in particular; `memory` is the name of the memory file."""
    (folder / "shop").mkdir(parents=True)
    (folder / PRICES).write_text(_PRICES)
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "check.py").write_text(_CHECK)
    (folder / "README.md").write_text("# Shop\n\nPrices and parts. Run `python3 check.py`.\n")
    (folder / ".gitignore").write_text("__pycache__/\n")
    for number, path in enumerate(parts(), 1):
        lines = (f"ITEM_{number:02d}_{line:02d} = {(number * 37 + line * 11) % 997}\n" for line in range(1, 31))
        (folder / path).write_text(f'"""Part {number} of the stock."""\n\n' + "".join(lines))
    if memory:
        (folder / memory).write_text(MEMORY + "\n")
    who = {"GIT_AUTHOR_NAME": "nobody", "GIT_AUTHOR_EMAIL": "nobody@example.com"}
    who |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in who.items()}
    when = {"GIT_AUTHOR_DATE": "2026-01-05T12:00:00Z", "GIT_COMMITTER_DATE": "2026-01-05T12:00:00Z"}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "The shop"]):
        subprocess.run(["git", *command], cwd=folder, env={**quiet, **who, **when}, check=True, capture_output=True)


def fixed(folder: Path) -> bool:
    """Whether the check passes there.

    Without byte code of an earlier run: a file that was edited within a second, to the same size, looks unchanged.
    """
    with tempfile.TemporaryDirectory() as nowhere:
        check = ["python3", "-X", f"pycache_prefix={nowhere}", "check.py"]
        done = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode == 0
