"""The first prompts of the runs with one slot, asked again of one idle slot: little, all and nothing of them cached.

python experiments/batching/asked_again.py [--most 12]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from rlm_loop.messages import Prompt
from rlm_loop.models import LocalModel
from rlm_loop.models.base import Model
from rlm_loop.report.tables.readme import write_between
from rlm_loop.study import load_study

HERE = Path(__file__).resolve().parent
ONE_SLOT = HERE.parent / "noise_floor" / "results" / "one_slot"
TOKENS = 160
"""Of a reply, at most; a text that differs mostly does so earlier."""


def prompts(most: int) -> Iterator[Prompt]:
    """The first prompt of each arm and task, at equal distances."""
    results = load_study(ONE_SLOT)
    rows = [row for row in results.rows if row["seed"] == 0]
    for index in range(min(most, len(rows))):
        _, prompt, *_ = next(iter(results.trace(rows[index * len(rows) // min(most, len(rows))]).calls()))
        yield prompt


def texts(model: Model, prompt: Prompt, times: int = 3) -> list[str]:
    """The reply after another question (of the prompt little is cached), then again (all but a token is)."""
    model.complete(Prompt.ask("Name a colour."), max_tokens=4)
    return [model.complete(prompt, max_tokens=TOKENS).text for _ in range(times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, default=12, help="prompts that are asked")
    model, whole_model = LocalModel("local"), LocalModel("local", prompt_cache=False)
    chosen = list(prompts(parser.parse_args().most))
    asked = [texts(model, prompt) for prompt in tqdm(chosen)]
    uncached = [texts(whole_model, prompt, 2) for prompt in tqdm(chosen, desc="without the cache")]
    other = sum(little != whole for little, whole, _ in asked)
    again = sum(whole != once_more for _, whole, once_more in asked)
    unequal = sum(first != second for first, second in uncached)
    said = (
        f"Asked again of one idle slot ({TOKENS} tokens a reply): {other} of {len(asked)} prompts got another reply "
        f"with all of them cached than after another question, and {again} of {len(asked)} with all cached twice over. "
        f"With `LocalModel(prompt_cache=False)` {unequal} of {len(asked)} got another reply."
    )
    write_between(HERE / "README.md", "asked", said)
    sys.stdout.write(said + "\n")


if __name__ == "__main__":
    main()
