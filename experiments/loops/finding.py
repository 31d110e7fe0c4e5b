"""Write the findings of all parts into README.md and tables.md, and the figures: `python finding.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.loops.study import AGAIN, LOOPS, PLAN
from experiments.loops.texts import KINDS
from experiments.shared import POOLED_FROM, arms_against, in_points, verdicts
from rlm_loop.report import Table, write_between
from rlm_loop.report.figures import resolve_rates, save
from rlm_loop.study import Results, load_study
from rlm_loop.study.compare.contrast import p_equals

HERE = Path(__file__).resolve().parent
#: The folder of each part, and that of its tuning.
PARTS = {"questions": "results", "repairs": "results-repairs"}
TUNED = {"questions": "tuning", "repairs": "tuning-repairs"}
WORDINGS = "results-wordings"
SETTINGS = "results-settings"
NAMES = {
    "code": "`ToolLoopAgent` (code blocks)",
    "lean": "`LeanAgent` (calls)",
    "react": "`ReActAgent` (text)",
    "react-calls": "`ReActAgent` over calls",
    "program": "one program, run once",
    "prose": "one answer, nothing run",
    AGAIN: "`ToolLoopAgent` once more: the noise",
}


def finding(results: Results) -> str:
    """Return the arms, their differences from the code loop, the declared tests, and the noise floor."""
    claims = [c for c in results.compare(analysis=PLAN).contrasts if c.measure == "resolved" and c.p_holm is not None]
    told = ", ".join(f"{c.arm} {p_equals(c.p_holm)}" for c in claims)
    declared = f"Against `code`, exact McNemar tests after Holm: {told}."
    return "\n\n".join([arms_against(results, "code"), declared, noise(results)])


def headline(results: Results) -> str:
    """Return the arms, most resolved first, each against the code loop, for README.md and docs/results.md.

    Points of an arm whose effect varies by suite are left out, as in `arms_against`; its test was declared and stays.
    """
    compared = results.compare(analysis=PLAN)
    claims = {c.arm: c for c in compared.contrasts if c.measure == "resolved"}
    varies = {test.arm for test in compared.interactions if test.p < POOLED_FROM}
    told = verdicts(results)
    rows: list[list[str]] = []
    for arm in results.arms:
        own = [known for (name, *_), known in told.items() if name == arm]
        spent = [row["input_tokens"] + row["output_tokens"] for row in results.rows if row["arm"] == arm]
        points = "varies by suite" if arm in varies else in_points(claims[arm]) if arm in claims else "baseline"
        p = p_equals(claims[arm].p_holm) if arm in claims else ""
        rows.append([NAMES[arm], str(sum(own)), points, p, f"{sum(spent) / len(spent):,.0f}"])
    rows.sort(key=lambda row: -int(row[1]))
    tasks = len({(row["suite"], row["task"]) for row in results.rows})
    columns = ["arm", f"resolved of {tasks}", "points more than code (95 %)", "p after Holm", "tokens a task"]
    title = f"Qwen2.5-Coder-1.5B on {tasks} questions that no earlier study had"
    return Table(title, columns, rows).to_markdown().strip()


def noise(results: Results) -> str:
    """Return how often the code loop and the same loop once more differ."""
    told = verdicts(results)
    pairs = [(told["code", *rest], told.get((AGAIN, *rest))) for arm, *rest in told if arm == "code"]
    known = [pair for pair in pairs if None not in pair]
    return f"Noise floor: `code` and `{AGAIN}` differ in {sum(a != b for a, b in known)} of {len(known)} tasks."


def by_suite(results: Results) -> str:
    """Return the tasks that each arm resolved in each suite."""
    suites = list(dict.fromkeys(row["suite"] for row in results.rows))
    rows = [[arm, *(count(results, arm, suite) for suite in suites)] for arm in results.arms]
    return Table("By suite", ["arm", *suites], rows).to_markdown().strip()


def tuning(results: Results) -> str:
    """Return, for each arm of a part, the dev tasks that each of its four texts resolved, and its prompt tokens."""
    arms = list(dict.fromkeys(arm.rpartition("-")[0] for arm in results.arms))
    rows = [
        [arm, *(f"{count(results, f'{arm}-{kind}')}, {tokens(results, f'{arm}-{kind}'):,.0f}" for kind in KINDS)]
        for arm in arms
    ]
    return Table("Dev tasks resolved, prompt tokens", ["arm", *KINDS], rows).to_markdown().strip()


def wordings(results: Results) -> str:
    """Return the tasks that each loop resolved in each of five wordings."""
    rows = [
        [loop, *(count(results, loop if n == 1 else f"{loop}-{n}") for n in range(1, 6))] for loop in LOOPS["wordings"]
    ]
    return Table("Resolved by wording", ["loop", *map(str, range(1, 6))], rows).to_markdown().strip()


def settings(results: Results) -> str:
    """Return, for each loop, the loop as it is against the same loop with one setting changed."""
    of = {loop: [arm for arm in results.arms if arm.partition("[")[0] == loop] for loop in LOOPS["settings"]}
    return "\n\n".join(arms_against(results.only(*arms), loop) for loop, arms in of.items())


def count(results: Results, arm: str, suite: str | None = None) -> str:
    own = [
        known for (name, task, _), known in verdicts(results).items() if name == arm and task.startswith(suite or "")
    ]
    return f"{sum(own)} of {len(own)}"


def tokens(results: Results, arm: str) -> float:
    own = [row["input_tokens"] for row in results.rows if row["arm"] == arm]
    return sum(own) / max(1, len(own))


def main() -> None:
    found = {part: load_study(HERE / folder) for part, folder in PARTS.items() if (HERE / folder).is_dir()}
    text = [f"### {part.capitalize()}\n\n{finding(results)}" for part, results in found.items()]
    more = [f"## {part.capitalize()}\n\n{by_suite(results)}" for part, results in found.items()]
    if (HERE / WORDINGS).is_dir():
        reworded = load_study(HERE / WORDINGS)
        text.append(f"### Wordings\n\n{wordings(reworded)}\n\n{noise(reworded)}")
    if (HERE / SETTINGS).is_dir():
        changed = load_study(HERE / SETTINGS)
        text.append(f"### Settings\n\n{settings(changed)}\n\n{noise(changed)}")
    tuned = {part: HERE / folder for part, folder in TUNED.items() if (HERE / folder).is_dir()}
    more += [f"## Texts tried for {part}\n\n{tuning(load_study(folder))}" for part, folder in tuned.items()]
    if not more:
        sys.exit(f"there are no results in {HERE} yet; README.md says how to run each part")
    (HERE / "tables.md").write_text("# Loops: by suite, and the texts that were tried\n\n" + "\n\n".join(more) + "\n")
    if text:
        write_between(HERE / "README.md", "finding", "\n\n".join(text))
    if "questions" in found:
        for page in ("README.md", "docs/results.md"):
            write_between(HERE.parents[1] / page, "loops", headline(found["questions"]))
    for part, results in found.items():
        save(resolve_rates(results), HERE / "figures" / f"{part}.png")
    print("\n\n".join([*text, *more]))


if __name__ == "__main__":
    main()
