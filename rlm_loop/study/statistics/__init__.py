"""The statistics of paired arms.  What a table needs is plain Python; the rest is built on scipy (extra `stats`).

Importing this package loads neither numpy nor scipy: a function is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlm_loop.hints.install import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.statistics.plain import (
    bootstrap,
    mean,
    percentile,
    ratio,
    sign_test,
    total,
    wilson,
    wilson_by_cluster,
)

if TYPE_CHECKING:
    from rlm_loop.study.statistics.agreeing import smallest_level
    from rlm_loop.study.statistics.clusters import codes_of, effective_size, sizes, sums, variance_of_mean
    from rlm_loop.study.statistics.families import holm, holm_levels
    from rlm_loop.study.statistics.margins import noninferiority, score_statistic
    from rlm_loop.study.statistics.passes import pass_at_k
    from rlm_loop.study.statistics.power import (
        fewest_clusters,
        pairs_for_mean,
        pairs_for_rate,
        power_of_mean,
        power_of_rate,
    )
    from rlm_loop.study.statistics.rates import (
        mcnemar,
        newcombe_interval,
        paired_difference,
        paired_table,
        rate_interval,
        wilson_interval,
    )
    from rlm_loop.study.statistics.ratios import flip_interval, mean_interval, mean_p, sign_flip
    from rlm_loop.study.statistics.sequences import bounded_sequence, symmetric_sequence

__all__ = [
    "bootstrap",
    "bounded_sequence",
    "codes_of",
    "effective_size",
    "fewest_clusters",
    "flip_interval",
    "holm",
    "holm_levels",
    "mcnemar",
    "mean",
    "mean_interval",
    "mean_p",
    "newcombe_interval",
    "noninferiority",
    "paired_difference",
    "paired_table",
    "pairs_for_mean",
    "pairs_for_rate",
    "pass_at_k",
    "percentile",
    "power_of_mean",
    "power_of_rate",
    "rate_interval",
    "ratio",
    "score_statistic",
    "sign_flip",
    "sign_test",
    "sizes",
    "smallest_level",
    "sums",
    "symmetric_sequence",
    "total",
    "variance_of_mean",
    "wilson",
    "wilson_by_cluster",
    "wilson_interval",
]

_HOME = {
    **dict.fromkeys(("codes_of", "effective_size", "sizes", "sums", "variance_of_mean"), "clusters"),
    **dict.fromkeys(("mcnemar", "newcombe_interval", "paired_difference", "paired_table"), "rates"),
    **dict.fromkeys(("rate_interval", "wilson_interval"), "rates"),
    **dict.fromkeys(("noninferiority", "score_statistic"), "margins"),
    **dict.fromkeys(("flip_interval", "mean_interval", "mean_p", "sign_flip"), "ratios"),
    **dict.fromkeys(("bounded_sequence", "symmetric_sequence"), "sequences"),
    **dict.fromkeys(("fewest_clusters", "pairs_for_mean", "pairs_for_rate", "power_of_mean", "power_of_rate"), "power"),
    **dict.fromkeys(("holm", "holm_levels"), "families"),
    "smallest_level": "agreeing",
    "pass_at_k": "passes",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("numpy", "scipy"):
            raise
        raise StudyError(f"{name} needs {error.name}: {install_line('stats')}") from None
    globals()[name] = value  # after `import_module`, which puts a module of the same name there
    return value
