"""The headline: this study in one sentence, with the noise floor of `../noise_floor`, in README.md and docs/results.md.

It draws `figures/headline.png` too: what the arms resolve for their tokens.

python experiments/answer_contract/headline.py [--folder runs/answer_contract] [--noise runs/noise_floor]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rlm_loop.report import figure
from rlm_loop.report.figures import save
from rlm_loop.report.tables.readme import write_between
from rlm_loop.study import Results, load_study
from rlm_loop.study.compare.comparison import Comparison
from rlm_loop.study.compare.contrast import Contrast, p_equals, percent
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.compare.suites import Interaction

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.answer_contract.finding import by_contract
from experiments.answer_contract.loop_effect import loop_effects
from experiments.answer_contract.study import PLAN, POOLED_FROM
from experiments.noise_floor.finding import apart, rerun_pairs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: Where the headline stands, between the marks `loops`.
PAGES = ("README.md", "docs/results.md")
NAMES = {
    "code": "code blocks",
    "lean": "the lean loop",
    "lean-strict": "the strict lean loop",
    "react": "ReAct",
    "direct": "one reply without a loop",
}
BASELINE = NAMES[str(PLAN.baseline)]


def headline(results: Results, noise: Results | None) -> str:
    """The sentence with n, intervals, contract and noise floor, then what the plan declared.

    `noise` are the results of the noise floor; `None` says that it was not measured.  Raises `StudyError` where the two
    arms of a claim have no task in common.
    """
    fair = by_contract(results, "artifact")
    compared = fair.compare(analysis=PLAN)
    suites = len({row["suite"] for row in fair.rows})
    said = (
        f"**On {_tasks(fair)} held tasks of {suites} suites with a 1.5B model, scored for every loop by the code its "
        f"run left behind where code is asked for ({_code(fair)} tasks) and by its answer elsewhere, "
        f"{_counts(fair)}; points more than {BASELINE}: {_differences(compared)}; "
        f"{_noise(noise)}.**"
    )
    more = [*_depends(compared), _suites(fair), _claims(compared), _spent(fair)]
    if noise is not None:
        more.append(f"Five wordings of equal meaning for each of three loops, in another study: {apart(noise)}")
    return "\n".join([said, "", *(f"- {sentence}" for sentence in more)])


def _tasks(fair: Results) -> int:
    return len({(row["suite"], row["task"]) for row in fair.complete_pairs})


def _counts(fair: Results) -> str:
    """How many each arm resolves, the most first."""
    found = {arm: sum(bool(is_resolved(r)) for r in fair.complete_pairs if r["arm"] == arm) for arm in fair.arms}
    ordered = sorted(found, key=lambda arm: -found[arm])
    first, *others = (f"{NAMES.get(arm, arm)} {found[arm]}" for arm in ordered)
    name, _, count = first.rpartition(" ")
    return _listed([f"{name} resolve{'' if name.endswith('s') else 's'} {count}", *others])


def _contrasts(compared: Comparison) -> list[Contrast]:
    return [c for c in compared.contrasts if c.measure == "resolved" and None not in (c.estimate, c.low, c.high)]


def _by_suite(compared: Comparison) -> dict[str, Interaction]:
    """The arms whose difference depends on the suite, so that there is no one number."""
    return {test.arm: test for test in compared.interactions if test.p < POOLED_FROM}


def _differences(compared: Comparison) -> str:
    """The points of each arm with their interval, by what the plan declared."""
    said: list[str] = []
    for one in _contrasts(compared):
        if one.arm not in _by_suite(compared):
            middle, low, high = (100 * (v or 0.0) for v in (one.estimate, one.low, one.high))  # none of them is `None`
            interval = f"{percent(one.confidence)} interval {low:.1f} to {high:.1f}"
            said.append(f"{NAMES.get(one.arm, one.arm)} {middle:+.1f} ({interval})")
    return ", ".join(said) or "none, since each depends on the suite"


def _depends(compared: Comparison) -> list[str]:
    """A sentence for each arm that has no one difference, with the suites between which it lies."""
    points = {(s.arm, s.suite): s.estimate for s in compared.suites}
    said: list[str] = []
    for arm, test in _by_suite(compared).items():
        ends = [
            f"{100 * (points.get((arm, suite)) or 0.0):+.0f} points in {suite.split('/')[0]}"
            for suite in (test.lowest, test.highest)
        ]
        said.append(
            f"How {NAMES.get(arm, arm)} stands to {BASELINE} depends on the suite ({p_equals(test.p)}): "
            f"from {ends[0]} to {ends[1]}."
        )
    return said


def _noise(noise: Results | None) -> str:
    if noise is None:
        return "how often the same arm ends otherwise when it is run again was not measured"
    pairs = rerun_pairs(noise)
    moved = sum(here != there for _, here, there in pairs)
    share = 100 * moved / len(pairs)
    return (
        f"in another study the same arm, run again, ends otherwise in {share:.0f} % of pairs ({moved} of {len(pairs)})"
    )


def _code(fair: Results) -> int:
    """How many tasks ask for code, whose artifact is scored."""
    return len({(row["suite"], row["task"]) for row in fair.rows if "by_submission" in row})


def _suites(fair: Results) -> str:
    """In which suites an effect of the loop is shown, after Holm."""
    found = loop_effects(fair.complete_pairs, [arm for arm in fair.arms if arm != "direct"])
    shown, others = ([f.suite.split("/")[0] for f in found if f.shown is it] for it in (True, False))
    test = f"Cochran's Q within tasks, Holm over {len(found)} suites"
    if not shown:
        return f"In no suite is an effect of the loop shown ({test})."
    rest = f", not in {_listed(others)}" if others else ""
    return f"An effect of the loop is shown in {_listed(shown)}{rest} ({test})."


def _claims(compared: Comparison) -> str:
    """What the plan declared, and of whom it is shown."""
    claimed = _contrasts(compared)
    shown = [NAMES.get(c.arm, c.arm) for c in claimed if c.holds]
    others = [NAMES.get(c.arm, c.arm) for c in claimed if not c.holds]
    claim = (
        f"Declared before the run: that an arm resolves no more than {100 * PLAN.margin:g} points fewer than "
        f"{BASELINE}. It is "
    )
    parts = [f"shown for {_listed(shown)}"] if shown else []
    return claim + ", ".join([*parts, *([f"not shown for {_listed(others)}"] if others else [])]) + "."


def _spent(fair: Results) -> str:
    """Prompt and reply tokens of a task, the fewest first.  The plan describes tokens and claims nothing of them."""
    found: dict[str, list[float]] = {}
    for row in fair.complete_pairs:
        found.setdefault(row["arm"], []).append(row["input_tokens"] + row["output_tokens"])
    means = sorted((sum(each) / len(each), arm) for arm, each in found.items())
    return (
        f"Tokens of a task, prompt and reply: {_listed([f'{NAMES.get(arm, arm)} {mean:,.0f}' for mean, arm in means])}."
    )


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the headline from the results of two studies.")
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="results of this study")
    parser.add_argument("--noise", type=Path, default=HERE.parent / "noise_floor" / "results", help="of noise_floor")
    given = parser.parse_args()
    noise = load_study(given.noise) if (given.noise / "study.json").is_file() else None
    results = load_study(given.folder)
    text = headline(results, noise)
    save(figure(by_contract(results, "artifact")), HERE / "figures" / "headline.png")
    for page in PAGES:
        write_between(ROOT / page, "loops", text)
    print(text)


if __name__ == "__main__":
    main()
