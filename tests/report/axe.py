"""axe-core, the usual checker of accessibility: where it is, and what it finds on a page.

`.ci/run` fetches it from npm; `npm install --no-save axe-core` in the repository does the same by hand.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browser import SETTLED, Browser

#: One file, without dependencies; nothing is fetched when a test runs.
AXE = Path(os.environ.get("RLM_LOOP_AXE") or Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js")
needs_axe = pytest.mark.skipif(
    not AXE.exists(), reason="axe-core is not installed: npm install --no-save axe-core, or RLM_LOOP_AXE=axe.min.js"
)
#: On a phone in the dark, and on a desk in the light.
SCREENS = ((390, True), (1280, False))
#: Every rule that is broken: its name, the first place, and what would mend it.
_FOUND = "axe.run().then(said => said.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"


def violations(browser: Browser, page: Path | str) -> list[Any]:
    """What axe finds on a page with all its parts open, on both screens."""
    found: list[Any] = []
    for width, dark in SCREENS:
        browser.open(page, width=width, dark=dark)
        browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.value(f"{AXE.read_text(encoding='utf-8')}; 0")
        browser.value(SETTLED)
        found += browser.value(_FOUND)
    return found
