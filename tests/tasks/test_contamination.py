"""What a model reproduces of a public text: measured against what it was told to say."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_loop import Task
from rlm_loop.cli.contamination import table_of
from rlm_loop.cli.main import main
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.tasks.contamination import contamination, other_names, published_text, renamed, reproduced, tokens

PROMPT = '''def scaled(numbers, factor):
    """Multiply every number
    by the factor that is given.
    >>> scaled([1], 2)
    [2]
    """
'''
SOLUTION = "    made = [number * factor for number in numbers]\n    return made\n"


def task(expected: str = PROMPT + SOLUTION) -> Task:
    return Task("one", "Complete this Python function.\n\n" + PROMPT.strip("\n"), expected=expected)


def test_half_of_the_question_is_shown_and_the_solution_belongs_to_the_rest() -> None:
    text, half = published_text(task())
    assert text[:half] == PROMPT[: PROMPT.index("    >>>")]
    assert text[half:] == PROMPT[PROMPT.index("    >>>") :] + SOLUTION


def test_a_text_without_its_solution_is_cut_in_half() -> None:
    assert published_text(Task("t", "one two three four five six seven eight", expected="9"))[1] == len(
        "one two three four"
    )
    assert published_text(Task("t", "too short", expected="9"))[1] == 0


def test_what_a_text_defines_has_another_name_everywhere() -> None:
    names = other_names(PROMPT + SOLUTION)
    assert set(names) == {"scaled", "numbers", "factor", "made", "number"}
    changed = renamed(PROMPT + SOLUTION, names)
    assert len(tokens(changed)) == len(tokens(PROMPT + SOLUTION))
    assert not set(names) & set(tokens(changed))
    assert other_names("How many primes are there below 1000?") == {}


@pytest.mark.parametrize(
    ("written", "longest", "share"),
    [("a b c d e f g h", 8, 1.0), ("x a b c d e f x", 6, 1 / 3), ("h g f e d c b a", 1, 0.0), ("", 0, 0.0)],
)
def test_runs_and_shares_are_counted_in_tokens(written: str, longest: int, share: float) -> None:
    found = reproduced("a b c d e f g h", written)
    assert (found.tokens, found.longest) == (8, longest)
    assert found.share == pytest.approx(share)


def test_what_was_shown_is_not_reproduced() -> None:
    assert reproduced("a b c d e f", "a b c d e f", shown="a b c d e f").share is None


def test_a_model_that_knows_the_text_does_worse_with_other_names() -> None:
    """It says the published rest, whatever it is asked to go on with."""
    text, half = published_text(task())
    asked: list[Prompt] = []

    def recite(prompt: Prompt) -> str:
        asked.append(prompt)
        return text[half:]

    (found,) = contamination(ScriptedModel([recite, recite]), [task()])
    assert found.control is not None
    assert (found.original.share, found.original.longest) == (1.0, found.original.tokens)
    assert found.control.share is not None
    assert found.control.share < 0.5
    assert [prompt.sampling["temperature"] for prompt in asked] == [0, 0]
    shown = [prompt.messages[0].text for prompt in asked]
    assert any("def scaled(" in text for text in shown)
    assert any("def amber(" in text for text in shown)
    assert SOLUTION.strip() not in "".join(shown)


def test_the_table_says_what_the_difference_is() -> None:
    text, half = published_text(task())
    found = [one for _ in range(8) for one in contamination(ScriptedModel([text[half:], ""]), [task()])]
    table = table_of(found, "made", "scripted")
    assert len(table.rows) == 8
    assert "Original against other names, 8 tasks: +" in table.notes[1]
    assert "none is no proof" in table.notes[-1]


@pytest.mark.parametrize(("stop", "status"), [(KeyboardInterrupt, 130), (ModelError("the server is gone"), 2)])
def test_what_was_found_is_shown_when_the_probe_ends_early(
    stop: Any, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def models(name: str) -> ScriptedModel:
        return ScriptedModel(["no idea", "no idea", stop], name=name)

    given = ["study", "contamination", "computation", "--model", "scripted", "--limit", "3"]
    assert main(given, models=models) == status
    out, err = capsys.readouterr()
    assert "What scripted writes of the rest of computation" in out
    assert "2/3" in err
    assert "Traceback" not in err


def test_a_suite_that_is_not_there_is_told_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "contamination", "humanevil", "--model", "scripted"]) == 2
    err = capsys.readouterr().err
    assert "did you mean 'humaneval'?" in err
    assert "not expected" not in err
