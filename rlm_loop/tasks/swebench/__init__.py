"""SWE-bench: its instances as tasks, predictions for its harness, and the harness's verdicts read back."""

from rlm_loop.tasks.swebench.harness import HarnessError, evaluate_predictions
from rlm_loop.tasks.swebench.instance import Instance, read_instance, read_instances, select
from rlm_loop.tasks.swebench.predictions import Prediction, Predictions, read_predictions
from rlm_loop.tasks.swebench.report import InstanceResult, Report, read_report
from rlm_loop.tasks.swebench.suite import CloneError, swebench

__all__ = [
    "CloneError",
    "HarnessError",
    "Instance",
    "InstanceResult",
    "Prediction",
    "Predictions",
    "Report",
    "evaluate_predictions",
    "read_instance",
    "read_instances",
    "read_predictions",
    "read_report",
    "select",
    "swebench",
]
