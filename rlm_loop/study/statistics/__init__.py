"""The statistics of paired arms, on scipy (extra `studies`).

Importing this package loads neither numpy nor scipy: a function is loaded when it is first asked for.
"""

# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.statistics.descriptive import mean, percentile, ratio, total

if TYPE_CHECKING:
    from rlm_loop.study.statistics.clusters import codes_of, effective_size, sizes, sums, variance_of_mean
    from rlm_loop.study.statistics.confidence_sequences import bounded_sequence, chance_to_decide
    from rlm_loop.study.statistics.interaction import heterogeneity_p
    from rlm_loop.study.statistics.multiple_testing import holm, holm_levels, smallest_level
    from rlm_loop.study.statistics.non_inferiority import noninferiority, score_statistic
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
        sign_test,
        wilson,
        wilson_by_cluster,
        wilson_interval,
    )
    from rlm_loop.study.statistics.ratios import bootstrap, flip_interval, mean_interval, mean_p, sign_flip

#: The module of each name that is loaded when it is asked for; a type checker reads the imports above.
HOME = {
    name: module
    for module, names in {
        "clusters": "codes_of effective_size sizes sums variance_of_mean",
        "confidence_sequences": "bounded_sequence chance_to_decide",
        "interaction": "heterogeneity_p",
        "multiple_testing": "holm holm_levels smallest_level",
        "non_inferiority": "noninferiority score_statistic",
        "power": "fewest_clusters pairs_for_mean pairs_for_rate power_of_mean power_of_rate",
        "rates": "mcnemar newcombe_interval paired_difference paired_table rate_interval sign_test "
        "wilson wilson_by_cluster wilson_interval",
        "ratios": "bootstrap flip_interval mean_interval mean_p sign_flip",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    home = HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("numpy", "scipy"):
            raise
        raise StudyError(f"{name} needs {package}: {install_line('studies')}") from None
    globals()[name] = value  # after `import_module`, which puts a module of the same name there
    return value
