"""Writes the samples of lm-evaluation-harness in `files/`, with lm_eval and no network:

    python write_lm_eval.py run --model scripted --model_args wrong=1+2+3+4 --include_path TASKS \\
        --tasks doubles_mc,doubles_gen --log_samples --output_path FOLDER

where TASKS is `lm_eval_tasks`, from whose parent it is to be run.
"""

from __future__ import annotations

import re
from typing import Any

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model


@register_model("scripted")
class Scripted(LM):
    """Right, but for the numbers in `wrong`."""

    def __init__(self, wrong: str = "", **rest: Any) -> None:
        super().__init__()
        self.wrong = {int(n) for n in str(wrong).split("+") if n}

    @classmethod
    def create_from_arg_obj(cls, arg_dict: dict[str, Any], additional_config: Any = None) -> Scripted:
        return cls(**arg_dict)

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: Any = None) -> Scripted:
        return cls(**dict(part.split("=") for part in arg_string.split(",") if part))

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        asked = [(_asked(request.args[0]), request.args[1].strip()) for request in requests]
        likely = [(choice == str(n + n)) != (n in self.wrong) for n, choice in asked]
        return [(-0.1 if holds else -3.0, holds) for holds in likely]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        return [0.0 for _ in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        asked = [_asked(request.args[0]) for request in requests]
        return [f"It is perhaps {2 * n}" if n in self.wrong else f"The answer is {2 * n}" for n in asked]


def _asked(context: str) -> int:
    return int(re.findall(r"is (\d+) plus", context)[-1])


if __name__ == "__main__":
    cli_evaluate()
