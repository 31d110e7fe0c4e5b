"""Suites by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlm_loop.tasks import Suite, get_suite, list_suites

OURS = ("computation", "frames", "function-repair")


def test_names() -> None:
    assert list_suites()[:6] == (*OURS, "humaneval", "humaneval-repair", "package_bugs")
    assert all(name.startswith("long_context/") for name in list_suites()[6:])


@pytest.mark.parametrize("name", OURS)
def test_a_suite_its_halves_and_its_ids(name: str) -> None:
    suite = get_suite(name)
    assert isinstance(suite, Suite)
    assert suite.name == name
    assert len(suite) >= 24
    halves = get_suite(f"{name}/dev"), get_suite(f"{name}/test")
    assert [len(h) for h in halves] == [len(suite) / 2] * 2
    assert {t.id for h in halves for t in h} == {t.id for t in suite}
    assert suite.take([suite.tasks[3].id]).tasks == (suite.tasks[3],)


def test_no_id_is_in_two_suites() -> None:
    ids = [task.id for name in OURS for task in get_suite(name)]
    assert len(ids) == len(set(ids))


def test_options_and_underscores() -> None:
    assert get_suite("long_context/needle", seed=3) != get_suite("long_context/needle")
    assert get_suite("function_repair/test") == get_suite("function-repair/test")
    with pytest.raises(ValueError, match="takes no options, but got seed"):
        get_suite("x.jsonl", seed=1)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        *(("frame", "frames"), ("", "known are computation"), ("frames/other", "no suite")),
        ("long_context/nedle@8k", "did you mean 'needle'"),
        ("long_context/needle@8x", "is not a number of characters"),
        *((f"long_context/needle@{size}", "out of range") for size in ("1k", "101M")),
        ("long_contexts", "did you mean 'long_context"),
    ],
)
def test_an_unknown_name_lists_the_known(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        get_suite(name)
    assert "\n" not in str(caught.value)


def test_no_suite_is_built_or_imported_before_it_is_asked_for() -> None:
    late = "frames", "humaneval", "function_repair", "pandas"
    program = f"import sys, rlm_loop.tasks; print([m for m in sys.modules if any(n in m for n in {late})])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
