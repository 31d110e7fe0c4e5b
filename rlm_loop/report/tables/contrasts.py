"""What a comparison found, in words for cells and sentences: figures, differences and ratios with their intervals."""

from __future__ import annotations

from rlm_loop.study import Contrast
from rlm_loop.study.compare.suites import SuiteEffect

#: Measures that have another name than their column; those of the claims that a study declares most often.
NAMES = {"resolved": "tasks resolved", "input_tokens": "prompt tokens"}


def measure_name(measure: str) -> str:
    """The name of a measure for a reader."""
    return NAMES.get(measure, measure.replace("_", " "))


def percent_of(value: float | None) -> str:
    """A share in percent; a dash where it is not known."""
    return "-" if value is None else f"{100 * value:.1f} %"


def points(value: float | None) -> str:
    """A difference of shares in points of 100, with its sign."""
    return "-" if value is None else f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def figure(contrast: Contrast, value: float | None) -> str:
    """A mean of one of the two arms; a dash where it is not known."""
    if value is None or contrast.effect == "difference":
        return percent_of(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"


def with_interval(of: Contrast | SuiteEffect, brackets: str = "[]", level: str = "") -> str:
    """A difference in points, or a ratio, with its interval (of few pairs it may have no end); a dash if not known.

    `level` is said behind the interval where it has another one than the head of its column says.
    """
    if of.estimate is None:
        return "-"
    say = points if isinstance(of, SuiteEffect) or of.effect == "difference" else "{:.2f}".format
    ends = "no interval" if of.low is None or of.high is None else f"{say(of.low)} to {say(of.high)}{level}"
    return f"{say(of.estimate)} {brackets[0]}{ends}{brackets[1]}"
