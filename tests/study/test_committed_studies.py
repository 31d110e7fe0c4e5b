"""The studies that this repository holds: each is whole, agrees with its traces, and its README holds its finding."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pytest

from rlm_loop.study import load_study, load_study_file, verify_traces

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
STUDIES = sorted(path.parent.relative_to(EXPERIMENTS).as_posix() for path in EXPERIMENTS.rglob("study.json"))
FINDINGS = sorted(p.parent.name for p in EXPERIMENTS.glob("*/finding.py") if (p.parent / "results/study.json").exists())
#: Studies whose file loads without another package or a data set from the hub.
FILES = sorted(
    {p.parent.name for p in EXPERIMENTS.glob("*/study.py")} - {"harness_tax", "loops", "recovery", "swebench_lite"}
)
#: Their findings take a bootstrap of mixed models, or the tests of 100 tasks.
LONG = {"noise_floor", "headline", "answer_contract"}
#: Studies of thousands of traces.
LARGE = {"answer_contract/results", "scaffold_length/results", "noise_floor/results"}


@pytest.mark.parametrize("folder", [pytest.param(s, marks=pytest.mark.slow if s in LARGE else ()) for s in STUDIES])
def test_a_study_is_whole_and_agrees_with_its_traces(folder: str) -> None:
    results = load_study(EXPERIMENTS / folder)
    assert (results.left_out, results.crashed) == (0, [])
    met = Counter((row["suite"], row["task"], row["seed"]) for row in results.rows)
    assert met == dict.fromkeys(met, len(results.arms))
    assert len({row["model"] for row in results.rows}) == 1
    assert verify_traces(EXPERIMENTS / folder) == []


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in FINDINGS])
def test_writing_its_finding_again_changes_nothing(name: str) -> None:
    """`python experiments/NAME/finding.py` writes it."""
    pytest.importorskip("scipy")
    finding = importlib.import_module(f"experiments.{name}.finding").finding(load_study(EXPERIMENTS / name / "results"))
    assert f"\n{finding.strip()}\n" in (EXPERIMENTS / name / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", FILES)
def test_its_file_makes_a_study(name: str) -> None:
    """No model is asked."""
    study = load_study_file(EXPERIMENTS / name)
    assert study.suites
    assert study.arms


def test_the_headline_of_the_pages_is_that_of_the_rows() -> None:
    """`python experiments/answer_contract/headline.py` writes it."""
    pytest.importorskip("scipy")
    from experiments.answer_contract.headline import headline

    text = headline(load_study(EXPERIMENTS / "answer_contract" / "results"))
    assert f"\n{text}\n" in (EXPERIMENTS.parent / "docs" / "results.md").read_text("utf-8")
    table, _, _ = text.partition("\n\n- ")
    assert f"\n{table}\n" in (EXPERIMENTS.parent / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("model", "results", "arm", "said"),
    [
        ("1.5B", "results", "json", "Of the same {} JSON replies, {}, {} or {} are resolved"),
        ("0.5B", "results-0.5b", "xml", "of the {} XML replies of the 0.5B, of which 35 hold a fence, {}, {} or {}"),
    ],
)
def test_the_readers_counts_are_those_of_the_rows(model: str, results: str, arm: str, said: str) -> None:
    pd = pytest.importorskip("pandas")
    folder = EXPERIMENTS / "container"
    verdicts = pd.read_csv(folder / "results" / "readers.csv").query(f"model == '{model}' and words == 0")
    rows = pd.read_json(folder / results / "results.jsonl.gz", lines=True).dropna(subset="arm")
    fair = rows.groupby("arm").resolved.sum()
    assert verdicts.groupby("arm").fair.sum().to_dict() == fair.to_dict()
    counts = verdicts[verdicts.arm == arm][["strict", "usual", "fair"]].sum()
    assert said.format(len(rows) // 5, *counts) in (folder / "README.md").read_text("utf-8")


@pytest.mark.parametrize(("loop", "results"), [("code", "results"), ("lean", "results-lean")])
def test_what_recovers_is_counted_in_the_rows(loop: str, results: str) -> None:
    pd = pytest.importorskip("pandas")
    folder = EXPERIMENTS / "recovery"
    text = (folder / "README.md").read_text("utf-8")
    first = pd.read_json(folder / "first" / "results.jsonl.gz", lines=True).dropna(subset="arm")
    assert f"{loop}: {first[first.arm == loop].resolved.sum():.0f} of {len(first) // 2} first replies" in text
    rows = pd.read_json(folder / results / "results.jsonl.gz", lines=True).dropna(subset="arm")
    assert f"{rows.resolved.sum():.0f} of {len(rows)} continuations" in text
    of_loop = text.partition(f"**{loop} loop**")[2]
    for arm, of in rows.groupby("arm"):
        assert f"| {arm} | {of.resolved.sum():.0f} of {len(of)} |" in of_loop
