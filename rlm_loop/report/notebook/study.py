"""Studies and results in a notebook, where they are more than a table: the grid before it runs, and Markdown."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rlm_loop.report.notebook.markdown import inline, table
from rlm_loop.report.notebook.run_html import BOX

if TYPE_CHECKING:
    from rlm_loop.study.results import Results
    from rlm_loop.study.study import Study

_NAME = "text-align:left;padding:.1em .8em .1em 0;border:0;vertical-align:top"


def study_html(study: Study) -> str:
    """The grid of a study as HTML, before anything of it is run."""
    rows = "".join(
        f'<tr><td style="{_NAME}">{escape(name)}</td><td style="{_NAME}">{escape(value)}</td></tr>'
        for name, value in _grid(study)
    )
    return (
        f'<div class="rlm-loop-study" style="{BOX}"><b>{escape(study.name)}</b>'
        f'<table style="border-collapse:collapse"><tbody>{rows}</tbody></table></div>'
    )


def study_markdown(study: Study) -> str:
    """The same as Markdown."""
    return (
        "\n".join([f"**{inline(study.name)}**", "", *(f"- {inline(n)}: {inline(v)}" for n, v in _grid(study))]) + "\n"
    )


def results_markdown(results: Results) -> str:
    """What results came to, and a row an arm, on the tasks that all arms were tried on."""
    rows = [
        (
            s.arm if len(results.models) < 2 else f"{s.arm}, {s.model}",
            str(s.n),
            str(s.resolved),
            "?" if s.rate is None else f"{100 * s.rate:.0f} % ({100 * s.low:.0f} to {100 * s.high:.0f})",
            *("?" if figure is None else f"{figure:,.0f}" for figure in (s.input_tokens, s.output_tokens)),
            "?" if s.steps is None else f"{s.steps:.1f}",
        )
        for s in results.summary()
    ]
    if not rows:
        return inline(str(results)) + "\n"
    columns = ("arm", "n", "resolved", "rate (95 %)", "input tokens a task", "output tokens a task", "steps")
    return f"{inline(str(results))}\n\n{table(columns, rows)}\n"


def _grid(study: Study) -> list[tuple[str, str]]:
    agents = study.agents()
    arms = list(next(iter(agents.values())))
    suites = [f"{suite.name} ({len(suite)} tasks)" for suite in study.suites]
    differs = "not declared" if study.differs is None else ", ".join(study.differs) or "nothing"
    return [
        ("arms", ", ".join(arms)),
        ("models", ", ".join(dict.fromkeys(model for model, _ in agents))),
        ("tasks", ", ".join(suites)),
        ("seeds", ", ".join(map(str, study.seeds))),
        ("arms differ in", differs),
        ("cells", f"{len(study.cells()):,}"),
    ]
