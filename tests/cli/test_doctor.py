"""`rlm-loop doctor`: it looks at the real machine, so the tests compare it with what else is known of it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from rlm_loop.cli import machine
from rlm_loop.cli.main import main
from rlm_loop.repl import PythonREPL
from rlm_loop.repl.isolation.kinds import LAUNCHERS, PROTECTION
from rlm_loop.repl.isolation.sandbox import Sandbox


def test_the_tables_name_every_kind_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for part in ("plain", "hardened", "sandbox", "container", "network", 'launcher="auto" means'):
        assert part in out
    missing = [f for f in (*machine.isolation(), *machine.surroundings()) if not f.there]
    assert all(f.how and f"{f.name}: {f.how}" in out for f in missing)


def test_json_is_one_object_and_tells_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    said = json.loads(out)
    kinds = {f["name"]: f for f in said["isolation"]}
    assert set(kinds) == {*LAUNCHERS, "container"} - {"auto"}
    assert kinds["plain"]["there"] is True
    assert kinds["sandbox"]["there"] is (Sandbox().problem(sys.executable) == "")
    others = {f["name"]: f for f in said["surroundings"]}
    assert others["git"]["there"] is (shutil.which("git") is not None)
    with PythonREPL(launcher="auto", timeout=60) as repl:
        repl.start()
        assert said["auto"] == repl.isolation


def test_every_kind_has_an_answer_to_every_hazard() -> None:
    kinds = {f.name for f in machine.isolation()}
    assert all(set(answers) == kinds for answers in PROTECTION.values())


@pytest.mark.parametrize(
    ("settings", "there", "part"),
    [
        ({}, False, "none"),
        ({"user/max_user_namespaces": "100\n"}, True, "open"),
        ({"user/max_user_namespaces": "0\n"}, False, "max_user_namespaces is 0"),
        ({"user/max_user_namespaces": "1", "kernel/unprivileged_userns_clone": "0\n"}, False, "userns_clone is 0"),
        ({"user/max_user_namespaces": "1", "kernel/apparmor_restrict_unprivileged_userns": "1"}, False, "apparmor"),
        ({"user/max_user_namespaces": "1", "kernel/apparmor_restrict_unprivileged_userns": "0"}, True, "open"),
    ],
)
def test_user_namespaces_can_be_switched_off_in_several_ways(
    tmp_path: Path, settings: dict[str, str], there: bool, part: str
) -> None:
    for name, value in settings.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(value)
    finding = machine.user_namespaces(tmp_path)
    assert finding.there is there
    assert part in finding.found
    assert there or finding.how


def test_a_program_that_is_missing_is_named_with_its_package() -> None:
    findings = {f.name: f for f in machine.surroundings(which=lambda name: None)}
    assert not findings["git"].there
    assert findings["git"].how == "apt-get install git"
