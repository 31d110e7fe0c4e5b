"""What the worker is started from, what its interpreter needs to read, and who may read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from session_kinds import as_root

from rlm_loop.repl import Hardened, PythonREPL, ReplError, Sandbox
from rlm_loop.repl.host.launch import worker_environment
from rlm_loop.repl.isolation.ordinary_user import RootFolder, cell_user, may_read
from rlm_loop.repl.isolation.readable import readable

# -- the environment


def test_only_what_is_listed_is_passed_with_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys = dict.fromkeys(["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANYTHING_ELSE"], "hunter2hunter2")
    own = {"PATH": "/bin", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([".", "", "lib", "/opt/x"])}
    for name, value in {**keys, **own}.items():
        monkeypatch.setenv(name, value)
    passed = worker_environment()
    assert "hunter2hunter2" not in passed.values()
    paths = os.pathsep.join([str(tmp_path), str(tmp_path / "lib"), "/opt/x"])
    assert [passed[name] for name in own] == ["/bin", "1", paths]


# -- files


def test_a_chain_of_links_is_followed_to_the_program_and_editable_packages_are_found(tmp_path: Path) -> None:
    real, program, alias = Path(sys.executable).resolve(), tmp_path / "bin" / "python", tmp_path / "alias" / "python3"
    packages = tmp_path / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    source = tmp_path / "src"
    needed = (program.parent, alias.parent, source, packages / "two", packages)
    for folder in needed:
        folder.mkdir(parents=True, exist_ok=True)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
    program.symlink_to("../alias/python3")
    alias.symlink_to(real)
    (packages / "a.pth").write_text(f"# a comment\nimport sys\n{source}\ntwo\n\n")
    paths = readable(str(program), {})[0]
    assert {str(folder) for folder in (*needed, real.parent)} <= {*paths}
    assert "/" not in paths


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReplError, match=r"no-such-folder.*does not exist"):
        readable(sys.executable, worker_environment(), [tmp_path / "no-such-folder"])


def _installed(folder: Path) -> Path:
    """A folder of packages, reached by a link as well, in which one package holds answers."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    for name in ("rlm_loop/data.json", "rlm_loop/sub/more.json", "other/data.json", "single.json"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("17")
        (packages / name).chmod(0o644)
    (folder / "lib64").symlink_to("lib")
    (folder / "lib32").symlink_to(folder / "lib")
    (packages / "link").symlink_to("rlm_loop")
    return packages


_READ = """
import contextlib, glob
read = []
for path in sorted(glob.glob(TOP + "**/*.json", recursive=True)):
    with contextlib.suppress(OSError): open(path).close(); read.append(path[len(TOP):])
"""


@pytest.mark.parametrize("kind", ["sandbox", "hardened"])
@pytest.mark.parametrize("named", ["", "rlm_loop/sub", "rlm_loop"])
def test_a_package_with_answers_is_hidden_unless_it_is_named(kind: str, named: str, monkeypatch: Any) -> None:
    launcher = {"sandbox": Sandbox, "hardened": Hardened}[kind]
    if problem := launcher().problem(sys.executable):
        pytest.skip(problem)
    with TemporaryDirectory() as name:
        folder = Path(name).resolve() / "installed"
        packages = _installed(folder)
        Path(name).chmod(0o755)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(packages)]))
        read = (packages / named,) if named else ()
        with PythonREPL(launcher=launcher(read=read)) as repl:
            repl.set("TOP", str(packages) + "/")
            assert repl.run(_READ).error is None
            found = repl.get("read")
    opened = [p for p in ("rlm_loop/data.json", "rlm_loop/sub/more.json") if named and p.startswith(named)]
    linked = [p.replace("rlm_loop", "link") for p in opened]
    assert found == sorted([*opened, *linked, "other/data.json", "single.json"])


def test_search_paths_are_readable_but_a_checkout_of_ours(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder, name in ((theirs, "theirs"), (ours, "rlm-loop-toolkit")):
        folder.mkdir()
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
    environment = {"PYTHONPATH": os.pathsep.join([str(theirs), str(ours), "/no/such/folder"])}
    paths = readable(sys.executable, environment)[0]
    assert (str(theirs) in paths, str(ours) in paths, "/no/such/folder" in paths) == (True, False, False)
    assert len(paths) == len(set(paths))
    assert str(ours) in readable(sys.executable, environment, [ours])[0]


def test_what_lies_in_a_closed_folder_is_not_open_to_all() -> None:
    with TemporaryDirectory() as name:  # pytest's own folders are closed
        closed, inner = Path(name), Path(name) / "inner"
        inner.mkdir()
        for folder in (inner, closed):
            folder.chmod(0o755)
        assert may_read([str(inner)])
        closed.chmod(0o700)
        assert (may_read([str(inner)]), may_read([str(closed.parent / "missing")])) == (False, False)


@as_root
def test_root_gives_its_session_a_user_of_its_own(tmp_path: Path) -> None:
    users: list[tuple[int, int]] = []
    for home in (tmp_path / "one", tmp_path / "two"):
        (home / "work").mkdir(parents=True)
        (home / "work" / "given.txt").touch()
        (home / "work" / "link").symlink_to("/etc/passwd")
        user = cell_user(home / "work", home)
        assert user is not None
        users.append(user)
        assert {p.lstat().st_uid for p in (home, home / "work", *(home / "work").iterdir())} == {user[0]}
        assert cell_user(home / "work", home) == user  # the same after a restart
    assert 0 not in {n for user in users for n in user}
    assert Path("/etc/passwd").stat().st_uid == 0


@as_root
def test_a_folder_that_was_given_keeps_its_owner(tmp_path: Path) -> None:
    home, given = tmp_path / "home", tmp_path / "given"
    home.mkdir()
    given.mkdir()
    with pytest.raises(RootFolder, match="belongs to root"):
        cell_user(given, home)
    given.chmod(0o777)
    assert cell_user(given, home) is not None
    os.chown(given, 4711, 0)
    assert (cell_user(given, home), given.stat().st_uid) == ((4711, 4711), 4711)  # not root's group


def test_an_ordinary_user_stays_who_it_is() -> None:
    code = "import os; from pathlib import Path; from rlm_loop.repl.isolation.ordinary_user import cell_user\n"
    code += "os.geteuid() or os.setuid(65534); print(cell_user(Path('/'), Path('/')))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env).stdout == "None\n"
