"""The package as others get it: wheel and source archive, a clean environment, typed, and open to other packages."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from rlm_loop import __version__

ROOT = Path(__file__).parents[1]

PLUGIN = """
from concurrent.futures import ThreadPoolExecutor
from rlm_loop import Suite, Task
from rlm_loop.models import ScriptedModel

executor = lambda: ThreadPoolExecutor(2)
model = lambda name, **options: ScriptedModel(["It is 1."], name=f"mine/{name}", **options)
suite = lambda tasks=2: Suite("mine", tuple(Task(f"t{n}", f"What is {n}?", n) for n in range(tasks)))
"""
ENTRY_POINTS = """
[rlm_loop.suites]
mine = my_plugin:suite
[rlm_loop.models]
mine = my_plugin:model
[rlm_loop.executors]
two = my_plugin:executor
"""


def built(kind: str, folder: Path) -> Path:
    """Build a wheel or a source archive with the build back end that `pyproject.toml` names."""
    pytest.importorskip("hatchling")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)], cwd=ROOT, check=True)
    (path,) = folder.iterdir()
    return path


def python(*command: str | Path, places: list[Path]) -> str:
    """Run Python outside the repository, in the first of the folders that are on its path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=places[0], check=False)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_wheel_works_in_a_clean_environment(tmp_path: Path) -> None:
    wheel = zipfile.ZipFile(built("wheel", tmp_path / "dist"))
    assert "rlm_loop/py.typed" in wheel.namelist()
    assert not [name for name in wheel.namelist() if not name.startswith(("rlm_loop/", "rlm_loop_toolkit-"))]
    venv.create(tmp_path / "clean", with_pip=False)
    run = tmp_path / "clean" / "bin" / "python", "-c"
    site = next((tmp_path / "clean").glob("lib/python3*/site-packages"))
    wheel.extractall(site)
    # Dependencies come from here, since no index is asked; the `.pth` file of an editable install is not read.
    places = [tmp_path, site, Path(sysconfig.get_paths()["purelib"])]
    said = python(*run, "import rlm_loop; print(rlm_loop.__file__, rlm_loop.__version__)", places=places)
    assert said.split() == [str(site / "rlm_loop" / "__init__.py"), __version__]
    command = "from rlm_loop.cli.main import main; main()"
    assert "study" in python(*run, command, "--help", places=places)
    said = python(*run, command, "study", "run", "ablations", places=places)
    assert ("repository" in said, "Traceback" in said) == (True, False), said


@pytest.mark.slow
def test_a_source_archive_has_the_package_alone(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", tmp_path)) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"rlm_loop", "pyproject.toml", "README.md", "LICENSE"} <= tops
    assert not tops & {"experiments", "tests", "notebooks"}
    assert next(tmp_path.iterdir()).stat().st_size < 3_000_000


def test_another_package_brings_a_suite_a_model_and_an_executor(tmp_path: Path) -> None:
    (tmp_path / "my_plugin-1.dist-info").mkdir()
    (tmp_path / "my_plugin-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1\n")
    (tmp_path / "my_plugin-1.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "my_plugin.py").write_text(PLUGIN)
    code = (
        "from rlm_loop import ToolLoopAgent; from rlm_loop.models import get_model; from rlm_loop.study import Study\n"
        "from rlm_loop.tasks import get_suite\n"
        "study = Study('p', {'a': ToolLoopAgent(model='mine/one', repl='plain')}, get_suite('mine', tasks=3))\n"
        "print(len(get_suite('mine')), get_model('mine/one').name, len(study.run('out', False, executor='two')))\n"
    )
    assert python(sys.executable, "-c", code, places=[tmp_path, ROOT]).split() == ["2", "mine/one", "3"]


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text()
