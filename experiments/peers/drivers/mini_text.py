"""mini-swe-agent with commands in fenced blocks."""

from __future__ import annotations

from typing import Any

import job as jobs
from mini_loop import play as play_mini
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel as Model


def play(job: jobs.Job) -> dict[str, Any]:
    return play_mini(job, Model, "mini_textbased.yaml")


if __name__ == "__main__":
    jobs.main(play, "mini-swe-agent")
