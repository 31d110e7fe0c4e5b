"""The statistics of paired arms, on scipy (extra `studies`).

Importing this package loads neither numpy nor scipy: a function is loaded when it is first asked for.
"""

# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false, reportWildcardImportFromLibrary=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError
from rlm_loop.study.statistics.descriptive import mean, percentile, ratio, total

if TYPE_CHECKING:
    from rlm_loop.study.statistics.clusters import *
    from rlm_loop.study.statistics.multiple_testing import *
    from rlm_loop.study.statistics.non_inferiority import *
    from rlm_loop.study.statistics.power import *
    from rlm_loop.study.statistics.rates import *
    from rlm_loop.study.statistics.ratios import *

#: The modules of the functions, those first that load without `scipy.stats`, which takes seconds.
_MODULES = ("multiple_testing", "clusters", "rates", "non_inferiority", "power", "ratios")


def __getattr__(name: str) -> Any:
    try:
        for module in () if name.startswith("_") or name in _MODULES else _MODULES:
            found = vars(import_module(f"{__name__}.{module}")).get(name)
            if getattr(found, "__module__", "").startswith(__name__):
                return found
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("numpy", "scipy"):
            raise
        raise StudyError(f"{name} needs {package}: {install_line('studies')}") from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
