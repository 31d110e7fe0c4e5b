"""The studies that this repository holds: each is whole, and its README holds what its `finding.py` writes there."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pytest

from experiments.tuning.study import best
from experiments.tuning.texts import CANDIDATES
from rlm_loop.report.tables.readme import write_between
from rlm_loop.study import Analysis, load_study, load_study_file, verify_traces
from rlm_loop.study.store.reading import read_fairness_check

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
CODER = "local:qwen2.5-coder-1.5b"
LOOPS = ["code", "lean", "react-native", "react-text"]
CHANGES = ["injectors=thought", "max_history=4", "max_depth=0", "require_code=True", "temperature=0.7"]

RULES = [f"{loop}{rule}" for loop in ("code", "lean", "react") for rule in ("", "[repeated=none]", "[malformed=1]")]
FRAMES, SIZES = ("mellea", "rlms", "smolagents"), ("x0.25", "x1", "x4", "filler")


def _writes(experiment: Path) -> bool:
    return (experiment / "finding.py").is_file()


#: The texts that went on to the second round of the tuning.
THROUGH = [arm for loop in CANDIDATES for arm in best(load_study(EXPERIMENTS / "tuning/results/round1"), loop)]
#: By folder: how many tasks each arm met, the arms, and the model.
STUDIES = {
    "ablations/results": (
        12,
        ["code", *(f"code[{c}]" for c in CHANGES), "lean", f"lean[{CHANGES[0]}]", f"lean[{CHANGES[-1]}]"],
        CODER,
    ),
    "answer_contract/results": (128, ["direct", "lean", "lean-strict", "code", "react"], CODER),
    "answer_contract/results/one_slot": (10, ["direct", "lean", "lean-strict", "code", "react"], "local"),
    "bug_fixing/results": (40, LOOPS, CODER),
    "context_dose/results": (
        24,
        [f"{loop}[context_tokens={dose}]" for loop in ("code", "lean") for dose in (30, 60, 120, 240)],
        CODER,
    ),
    "headline/results": (100, ["lean", "react-text", "code"], CODER),
    "lean_vs_react/results": (36, ["code", "lean", "lean+nudge", "react-native", "react-text"], CODER),
    "mcp_as_code/results": (14, ["lean", "code"], CODER),
    "noise_floor/results": (32, [f"{loop}-w{n}" for loop in ("code", "lean", "react") for n in range(1, 6)], CODER),
    "noise_floor/results/one_slot": (
        6,
        [f"{loop}-w{n}" for loop in ("code", "lean", "react") for n in range(1, 6)],
        "local",
    ),
    "recursion_depth/results/oracle": (
        24,
        ["direct", "depth-0", "depth-1", "depth-2"],
        "oracle (scripted, no language model)",
    ),
    "recursion_depth/results": (20, ["direct", "depth-0"], CODER),
    "recursion_depth/results/subcalls": (10, ["depth-1", "depth-2"], CODER),
    "referee_arms/results": (
        24,
        [
            "direct",
            *RULES,
            *(f"lean[{c}]" for c in ("text_answers=no", "says=proceed", "says=empty")),
            "react[example=no]",
        ],
        CODER,
    ),
    "referee_arms/results/peers": (24, ["smolagents-code", "smolagents-tools"], CODER),
    "scaffold_length/results": (40, ["none", *(f"{frame}-{size}" for frame in FRAMES for size in SIZES)], CODER),
    "scaffold_length/results/one_slot": (
        4,
        ["none", *(f"{frame}-{size}" for frame in FRAMES for size in SIZES)],
        "local",
    ),
    "token_overhead/results": (
        28,
        ["lean", "thought-52", "thought-208", "thought-832", "nudge-every-2", "nudge-every-1"],
        CODER,
    ),
    "tuning/results/round1": (12, [arm for loop in CANDIDATES.values() for arm in loop], CODER),
    "tuning/results/round2": (36, THROUGH, CODER),
}
#: Studies that were run; one may be committed with its plan alone.
FINDINGS = sorted(path.parents[1].name for path in EXPERIMENTS.glob("*/results/study.json") if _writes(path.parents[1]))


def test_every_committed_study_is_in_the_table() -> None:
    assert sorted(STUDIES) == sorted(
        path.parent.relative_to(EXPERIMENTS).as_posix() for path in EXPERIMENTS.rglob("study.json")
    )


@pytest.mark.parametrize("folder", STUDIES)
def test_it_is_whole_and_agrees_with_its_traces(folder: str) -> None:
    count, arms, model = STUDIES[folder]
    results = load_study(EXPERIMENTS / folder)
    assert (results.left_out, results.crashed, results.arms) == (0, [], arms)
    assert {row["model"] for row in results.rows} == {model}
    met = Counter((row["suite"], row["task"], row["seed"]) for row in results.rows)
    assert met == dict.fromkeys(met, len(arms))
    assert len(met) == count
    assert Counter(row["arm"] for row in results.rows) == dict.fromkeys(arms, count)
    assert verify_traces(EXPERIMENTS / folder) == []


@pytest.mark.parametrize("name", ["ablations", "headline"])
def test_its_tasks_are_those_that_the_file_makes(name: str) -> None:
    tasks = {(suite.name, task.id) for suite in load_study_file(EXPERIMENTS / name).suites for task in suite}
    rows = load_study(EXPERIMENTS / name / "results").rows
    assert {(row["suite"], row["task"]) for row in rows} == tasks


@pytest.mark.parametrize(("name", "differs"), [("headline", None), ("token_overhead", ("injectors",))])
def test_it_was_fair(name: str, differs: tuple[str, ...] | None) -> None:
    found = read_fairness_check(EXPERIMENTS / name / "results")
    assert found is not None
    assert found.fair
    assert differs is None or found.differs == differs


def test_the_plan_of_headline_is_what_its_readme_declared() -> None:
    assert load_study_file(EXPERIMENTS / "headline").analysis == Analysis(baseline="react-text", margin=0.03)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "headline" else ()) for n in FINDINGS])
def test_writing_its_finding_again_changes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python experiments/NAME/finding.py` writes it."""
    pytest.importorskip("scipy")
    monkeypatch.syspath_prepend(EXPERIMENTS.parent)
    finding = importlib.import_module(f"experiments.{name}.finding").finding
    readme = tmp_path / "README.md"
    committed = (EXPERIMENTS / name / "README.md").read_text("utf-8")
    readme.write_text(committed, "utf-8")
    write_between(readme, "finding", finding(load_study(EXPERIMENTS / name / "results")).strip())
    assert readme.read_text("utf-8") == committed


def test_the_table_of_batching_is_that_of_the_rows() -> None:
    """`python experiments/batching/finding.py` writes it."""
    finding = importlib.import_module("experiments.batching.finding").finding
    assert finding().strip() in (EXPERIMENTS / "batching/README.md").read_text("utf-8")


def test_the_headline_of_the_pages_is_that_of_the_rows() -> None:
    """`python experiments/answer_contract/headline.py` writes it."""
    pytest.importorskip("scipy")
    from experiments.answer_contract.headline import PAGES, headline

    noise = EXPERIMENTS / "noise_floor" / "results"
    measured = load_study(noise) if (noise / "study.json").is_file() else None
    text = headline(load_study(EXPERIMENTS / "answer_contract" / "results"), measured)
    for page in PAGES:
        assert f"\n{text}\n" in (EXPERIMENTS.parent / page).read_text("utf-8"), page
