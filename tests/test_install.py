"""What a reader is told to install is there: extras that exist, from a clone, and never another project's package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from rlm_loop.errors import install_line

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
THIS = Path(__file__)
EXTRAS = set(PROJECT["optional-dependencies"])
#: `rlm-loop` on the package index is another project's.
FOREIGN = re.compile(r"""pip install(?: -\S+)* ["']?rlm[-_]loop(?![-\w/])|\brlm[-_]loop\[[a-z]""")
OWN = re.compile(r"\.\[([a-z,\s-]+)\]")

FOLDERS = ("docs", "rlm_loop", "notebooks", "tests", "experiments", "benchmarks")
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", ".ci/run")),
    *(path for folder in FOLDERS for kind in ("md", "py", "ipynb") for path in (ROOT / folder).rglob(f"*.{kind}")),
]


def wrong(text: str) -> list[str]:
    """What of a text cannot be installed as it says."""
    lines = [line for line in text.splitlines() if "pip install" in line or "[local" in line]
    named = {e.strip() for line in lines for found in OWN.findall(line.replace("\\", "")) for e in found.split(",")}
    return [found[0] for found in FOREIGN.finditer(text)] + sorted(named - EXTRAS)


def test_no_page_and_no_message_names_what_is_not_there() -> None:
    assert len(TEXTS) > 500
    faults = {str(p.relative_to(ROOT)): found for p in TEXTS if p != THIS and (found := wrong(p.read_text()))}
    assert faults == {}


def test_what_is_wrong_is_found() -> None:
    right = 'git clone https://host/rlm-loop && pip install -e ".[local,studies]" smolagents==1.26.0'
    faults = ('"rlm-loop[local]"', "-U rlm-loop", "x  # needs `rlm-loop[kernel]`", '-e ".[lcoal]"')
    assert [len(wrong(text)) for text in (right, *(f"pip install {fault}" for fault in faults))] == [0, 1, 1, 1, 1]


def test_the_distribution_has_a_name_of_its_own() -> None:
    assert PROJECT["name"] == "rlm-loop-toolkit"
    assert set(PROJECT["scripts"]) == {"rlm-loop"}
    inner = [need for needs in PROJECT["optional-dependencies"].values() for need in needs if need.startswith("rlm")]
    parts = [need.rstrip("]").partition("[") for need in inner]
    assert {name for name, _, _ in parts} == {PROJECT["name"]}
    assert {extra for _, _, extras in parts for extra in extras.split(",")} <= EXTRAS


def test_every_extra_of_a_message_exists() -> None:
    named = [re.findall(r"install_line\([\"'](\w+)", path.read_text()) for path in (ROOT / "rlm_loop").rglob("*.py")]
    assert {"local"} < set().union(*named) <= EXTRAS
    assert install_line("local").startswith('pip install -e ".[local]"')
