"""Our bytes are those of the packages: the quotes are evaluated as the packages would, and compared."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_loop.dialects.peer_injectors import TEXTS, PeerSource
from rlm_loop.dialects.presets import PRESETS

ROWS: list[dict[str, str]] = json.loads(Path(__file__).with_name("peer_texts.json").read_text(encoding="utf-8"))
QUOTED = {row["name"]: row["quoted"] for row in ROWS}
FILES = sorted({(row["package"], row["version"], row["file"], row["sha256"]) for row in ROWS})


def evaluated(name: str, **names: Any) -> str:
    """A quoted Python expression, with the values that its names have in the package."""
    return eval(f"({QUOTED[name]})", {}, names)


def test_mellea() -> None:
    rendered = QUOTED["MELLEA_INITIATOR"].replace("{{ finalizer_tool_name }}", "final_answer")
    assert rendered.replace("{{ goal-}}\n", "why?") == TEXTS["MELLEA_INITIATOR"] + "why?"
    assert QUOTED["MELLEA_THOUGHT"].rstrip("\n") == TEXTS["MELLEA_THOUGHT"]
    assert len(TEXTS["MELLEA_THOUGHT"]) == 208


def test_rlms() -> None:
    assert evaluated("RLMS_SAFEGUARD") == TEXTS["RLMS_SAFEGUARD"]
    assert evaluated("RLMS_TURN") == TEXTS["RLMS_TURN"]
    names = ["context", "x"]
    line = evaluated("RLMS_NAMES", important_vars=dict.fromkeys(names, ""))
    assert line == TEXTS["RLMS_NAMES"].format(names=names)


def test_smolagents() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "python_interpreter", "arguments": "x = 1"}}
    step = SimpleNamespace(tool_calls=[SimpleNamespace(dict=lambda: call)])
    assert evaluated("SMOLAGENTS_CALLING", self=step) == TEXTS["SMOLAGENTS_CALLING"].format(calls=[call])
    assert evaluated("SMOLAGENTS_RETRY") == "\n" + TEXTS["SMOLAGENTS_RETRY"]
    assert re.findall(r'"(\w+)":', QUOTED["ToolCall.dict"]) == ["id", "type", "function", "name", "arguments"]


def test_dspy() -> None:
    code = evaluated("DSPY_CODE", self=SimpleNamespace(code="x = 1"))
    reasoning = evaluated("DSPY_REASONING", self=SimpleNamespace(reasoning="look"))
    output = evaluated("DSPY_OUTPUT", raw_len=1234, output="text")
    entry = SimpleNamespace(format_output=lambda *_: output, output="")
    step = evaluated(
        "DSPY_STEP", self=entry, index=1, reasoning_line=reasoning, code_block=code, max_output_chars=10_000
    )
    ours = TEXTS["DSPY_STEP"].format(number=2) + TEXTS["DSPY_REASONING"].format(reasoning="look")
    ours += TEXTS["DSPY_CODE"].format(code="x = 1") + TEXTS["DSPY_OUTPUT"].format(length=1234, output="text")
    assert step == ours
    assert evaluated("DSPY_EMPTY") == TEXTS["DSPY_EMPTY"]
    assert evaluated("DSPY_FIELD", k="code", formatted_field_value="") == TEXTS["DSPY_FIELD"].format(name="code")
    said: dict[str, Any] = {
        "signature": SimpleNamespace(output_fields={"reasoning": 0, "code": 0}),
        "type_info": lambda _: "",
    }
    exec("\n".join(line.strip() for line in f"message = {QUOTED['DSPY_REMINDER']}".splitlines()), said)
    assert said["message"] == TEXTS["DSPY_REMINDER"]


def test_inspect_and_fast_rlm() -> None:
    assert QUOTED["INSPECT_CONTINUE"] == TEXTS["INSPECT_CONTINUE"]
    assert len(TEXTS["INSPECT_CONTINUE"].replace("{submit}", "submit")) == 160
    parts = re.findall(r"`([^`]*)`", QUOTED["FAST_RLM_BANNER"])
    banner = "".join(parts).replace("\\n", "\n").replace("${remaining}", "{remaining}").replace("${maxCalls}", "{most}")
    assert banner == TEXTS["FAST_RLM_BANNER"]
    assert QUOTED["FAST_RLM_NO_CODE"] == TEXTS["FAST_RLM_NO_CODE"]


def test_every_source_is_in_the_fixture_with_its_version() -> None:
    sources = {s for p in PRESETS.values() for s in p.sources if s.version}
    assert {(s.package, s.version, s.file) for s in sources} == {f[:3] for f in FILES}
    assert {p.package for p in sources} == {"mellea", "rlms", "smolagents", "dspy", "inspect-ai", "fast-rlm"}
    assert str(PeerSource("mellea", "0.8.0", "a.py")) == "mellea 0.8.0, a.py"


def installed(package: str, version: str, file: str) -> Path | None:
    """The file of an installed package of that version, or below a folder of `RLM_LOOP_PEER_FILES`."""
    for folder in filter(None, os.environ.get("RLM_LOOP_PEER_FILES", "").split(os.pathsep)):
        found = next(Path(folder).glob(f"*/{file}"), None)
        if found is not None:
            return found
    try:
        there = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return None
    return Path(str(there.locate_file(file))) if there.version == version else None


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f[0]}:{f[2].rpartition('/')[2]}")
def test_the_quotes_are_in_the_package(file: tuple[str, str, str, str]) -> None:
    path = installed(*file[:3])
    if path is None:
        pytest.skip(f"{file[0]} {file[1]} is not installed")
    raw = path.read_bytes()
    assert hashlib.sha256(raw).hexdigest() == file[3]
    rows: list[Mapping[str, str]] = [row for row in ROWS if row["sha256"] == file[3]]
    assert rows
    assert all(row["quoted"] in raw.decode() for row in rows)
