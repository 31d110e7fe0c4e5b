"""The table of presets, and presets on the command line."""

from __future__ import annotations

import pytest

from rlm_loop.cli.main import main
from rlm_loop.dialects.presets import PRESETS
from rlm_loop.models import ScriptedModel
from rlm_loop.report import preset_table


def test_every_preset_is_a_row_with_its_size() -> None:
    table = preset_table()
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == list(PRESETS)
    assert rows["mellea-thought"] == ["before every reply", "mellea 0.8.0", "208", "208"]
    assert rows["inspect-continue"][2:] == ["0", str(len("final_answer") - len("submit") + 160)]
    assert rows["fast-rlm-banner"][2] == "0"
    assert int(rows["fast-rlm-banner"][3]) > 100  # at half of its steps
    assert int(rows["dspy-history"][3]) > len("[[ ## repl_history ## ]]")
    assert int(rows["rlms-variables"][3]) == len("REPL variables: ['total']\n")
    counted = preset_table(lambda text: len(text.split()))
    assert counted.columns[-2:] == ["first, tokens", "a turn, tokens"]
    assert counted.rows[1][-2:] == ["39", "39"]


def test_presets_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    assert "mellea-react" in capsys.readouterr().out
    model = ScriptedModel(["5"])
    argv = ["run", "How many?", "--preset", "rlms-turn-counter", "--preset", "mellea-thought", "--max-steps", "7"]
    assert main([*argv, "--quiet"], models=lambda *_, **__: model) == 0
    text = model.prompts[0].messages[-1].text
    assert "Turn 1/7:" in text
    assert "Think about what to do next" in text
    capsys.readouterr()
    assert main(["run", "How many?", "--preset", "none"], models=lambda *_, **__: model) == 2
    assert "there is no preset 'none'; there are mellea-initiator" in capsys.readouterr().err
