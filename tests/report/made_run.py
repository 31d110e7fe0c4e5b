"""Runs to be shown: one with one of everything that a page shows, written by the real `Trace`, and a long one."""

from __future__ import annotations

from pathlib import Path

from made_traces import Told

from rlm_loop import ToolLoopAgent
from rlm_loop.actions import Answer, CallTool, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import say
from rlm_loop.models import ScriptedModel

PATCH = """diff --git a/parsing.py b/parsing.py
index 83db48f..bf2a1c0 100644
--- a/parsing.py
+++ b/parsing.py
@@ -10,7 +10,7 @@ def numbers(text):
     found = []
     for part in text.split(","):
-        found.append(int(part))
+        found.append(int(part.strip() or 0))
     return found
"""
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> & <b>bold</b>"
CODE = '''import re


@cache
def total(lines: list[str]) -> int:
    """The sum of all amounts."""
    # only what is paid counts
    return sum(int(m[1]) for line in lines if (m := re.search(r"amount=(\\d+)", line)))


print(total(context.splitlines()), len(context))
'''


def everything(path: Path) -> Path:
    """Write it and return the path."""
    told = Told(path, context="x" * 5000, question="Repair `numbers` in parsing.py, and say what the amounts come to.")
    record = told.trace.record
    told.turn(CODE, Observation("18250 5000\n", cause="repl_output", seconds=0.4), brief="Repair `numbers`.")
    told.batch([f"How many amounts are in part {i}?" for i in range(12)], [str(i) for i in range(12)])
    told.turn("parts = llm_query_batched(prompts)\nprint(parts)", "['0', '1', '2', '3']")
    agent = told.start(kind="agent", context="part")
    told.turn("print(context)", "part", node=agent, brief="Look at this part.")
    told.child("And this?", "Nothing.", parent=agent)
    told.says("Nothing is wrong here.", node=agent)
    told.stop(agent, stop="answered")
    failed = told.start()
    told.stop(failed, error={"kind": "model", "message": "the provider said 503: try again later"})
    wrong = "ValueError: invalid literal"
    raised = f'Traceback (most recent call last):\n  File "<cell 3>", line 1, in <module>\n{wrong}'
    told.turn("print(numbers('1, 2,'))", Observation(raised, Failure("runtime", wrong), "error", seconds=0.2))
    edit = CallTool("edit_file", '{"path": "parsing.py", "old": "int(part)", "new": "int(part.strip() or 0)"}')
    files = {"added": ["notes/why.md"], "changed": ["parsing.py"], "removed": ["parsing.pyc"], "tree": "t1"}
    told.turn(edit, Observation("Edited parsing.py.", effects=files))
    told.trace.patch("t1", PATCH, node="0", depth=0, turn=4)
    unread = "the reply holds an unclosed block"
    told.turn(Malformed(unread), Observation(failure=Failure("malformed", unread)))
    record(
        "compaction", node="0", depth=0, turn=5, policy="window", asked="window", due="tokens", fallback=None,
        tokens_before=6200, tokens=2100, messages_before=12, messages=6, left_out=[1, 2], shortened=[], over=False,
        sizes={},
    )  # fmt: skip
    told._asked["0"] += (say("user", "Reminder: answer with a number.", "scaffold:nudge", turn=5),)  # pyright: ignore[reportPrivateUsage]
    told.turn(RunCode(f"print({HOSTILE!r})", notes=("an unclosed fence",)), Observation(HOSTILE, cause="repl_output"))
    record("model_error", node="0", depth=0, turn=7, request="r", error="ModelError: the server hung up; will retry")
    told.turn("print('y' * 90000)", Observation("y" * 30_000, truncated=True, full="y" * 90_000, cause="repl_output"))
    told.turn(Answer("18250"), Observation(answer=FinalAnswer("18250", "text")))
    told.end("18250", artifact=PATCH, steps=8, over_budget=False, isolation="sandbox")
    told.trace.close()
    return path


def long_run(path: Path, turns: int) -> Path:
    """A run of so many turns, of which every 25th fails."""
    cells = [f"rows = {n * 40}\nprint(rows, rows // ({n} % 25))" for n in range(1, turns)]
    model = ScriptedModel([f"Next.\n\n```python\n{cell}\n```" for cell in [*cells, "final_answer = rows"]])
    ToolLoopAgent(model=model, max_steps=turns, repl="plain").run("Count to the end.", trace=path)
    return path
