"""rlm_loop: `LeanAgent` without its tool `final_answer`, so that a reply which calls nothing is the answer."""

from __future__ import annotations

from functools import partial

import job as jobs
import ours_lean

if __name__ == "__main__":
    jobs.main(partial(ours_lean.play, answer_tool=False), "rlm-loop")
