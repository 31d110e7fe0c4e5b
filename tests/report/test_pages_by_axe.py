"""The pages that are written as files, under axe-core; those of `rlm-loop view` are in test_view_in_browser.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe import needs_axe, violations
from browser import MISSING, Browser, chromium
from made_run import everything, long_run
from made_study import made_study

from rlm_loop.cli.main import main
from rlm_loop.report import run_page, write_study_page

pytestmark = [pytest.mark.skipif(chromium() is None, reason=MISSING), needs_axe]


def run(folder: Path) -> Path:
    (folder / "page.html").write_text(run_page(everything(folder / "run.jsonl")), encoding="utf-8")
    return folder / "page.html"


def many_steps(folder: Path) -> Path:
    (folder / "page.html").write_text(run_page(long_run(folder / "run.jsonl", 60)), encoding="utf-8")
    return folder / "page.html"


def study(folder: Path) -> Path:
    return write_study_page(made_study(folder / "study"), folder / "page.html")


def compare(folder: Path) -> Path:
    made_study(folder / "study")
    main(["compare", str(folder / "study"), "--html", str(folder / "page.html")])
    return folder / "page.html"


@pytest.mark.parametrize("write", [run, many_steps, study, compare])
def test_axe_finds_nothing_on_a_written_page(browser: Browser, tmp_path: Path, write: Callable[[Path], Path]) -> None:
    assert violations(browser, write(tmp_path)) == []
