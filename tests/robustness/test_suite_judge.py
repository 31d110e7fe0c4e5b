"""What the suite itself decides: refusals, and hosts that are forked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.robustness.suite import CellCase, CellStep, Forks, Seen, named, run_apart, run_cells
from experiments.robustness.suite.__main__ import host_command
from experiments.robustness.suite.world import World


class Refusing:
    """A subject that refuses every cell but those of the runner itself."""

    features = frozenset(["variables"])
    bound = None

    def run(self, code: str, hasty: bool = False) -> Seen:
        if code == "print(6 * 7)":
            return Seen("42\n")
        if code == "print(kept_before + 1)":
            return Seen("41\n")
        return Seen("", "raised", "that is not allowed", refused=True)

    def set(self, name: str, value: Any, reserved: bool = False) -> None: ...

    def new_run(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(("theme", "colour"), [("endless loops", "green"), ("names over cells", "red")])
def test_a_hostile_cell_may_be_refused_and_ordinary_work_may_not(theme: str, colour: str) -> None:
    step = CellStep("while True: pass", frozenset(["stopped"]), shows=("before",))
    case = CellCase(name="x", theme=theme, does="", must="", steps=(step,))
    assert run_cells(case, Refusing()).colour == colour


def test_what_a_refusal_shows_is_looked_at() -> None:
    case = CellCase(name="x", theme="left behind", does="", must="", steps=(CellStep("1", hides=("not allowed",)),))
    assert "showed" in run_cells(case, Refusing()).reason


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is left of processes is seen in /proc")


@linux
def test_a_server_of_forks_outlives_its_hosts() -> None:
    command = host_command("plain")
    with Forks(command) as forks:
        verdicts = [run_apart(command, named(n), kind="plain", forks=forks) for n in ("kill-its-parent", "sys-exit")]
        assert [v.colour for v in verdicts] == ["green", "green"]


@linux
def test_a_server_that_died_is_replaced(tmp_path: Path) -> None:
    command = host_command("plain")
    with Forks(command) as forks, World() as world:
        for name in ("first", "second"):
            report = tmp_path / name
            guard = forks.start("empty", report, world.environment(), world.folder)
            assert guard.wait(60) == 0
            assert '"green"' in report.read_text()
            forks._server.kill()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
            forks._server.wait()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
