"""rlm_loop: `LeanAgent` without its tool `final_answer`, so that a reply which calls nothing is the answer."""

from __future__ import annotations

from functools import partial

import job as jobs
from ours_lean import play

if __name__ == "__main__":
    jobs.main(partial(play, answer_tool=False), "rlm-loop")
