"""A run with one of everything that a page shows, written by the real `Trace`."""

from __future__ import annotations

from pathlib import Path

from made_traces import Told

from rlm_loop.actions import Answer, CallTool, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import Message, Reply, Span, Usage, say
from rlm_loop.traces import Trace

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


def everything(path: Path, *, end: bool = True) -> Path:
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
    told.turn(
        "print(numbers('1, 2,'))",
        Observation(
            'Traceback (most recent call last):\n  File "<cell 3>", line 1, in <module>\nValueError: invalid literal',
            Failure("runtime", "ValueError: invalid literal"),
            "error",
            seconds=0.2,
        ),
    )
    told.turn(
        CallTool("edit_file", '{"path": "parsing.py", "old": "int(part)", "new": "int(part.strip() or 0)"}'),
        Observation(
            "Edited parsing.py.",
            effects={"added": ["notes/why.md"], "changed": ["parsing.py"], "removed": ["parsing.pyc"], "tree": "t1"},
        ),
    )
    told.trace.patch("t1", PATCH, node="0", depth=0, turn=4)
    told.turn(
        Malformed("the reply holds an unclosed block"), Observation(failure=Failure("malformed", "an unclosed block"))
    )
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
    if end:
        told.end("18250", artifact=PATCH, steps=8, over_budget=False, isolation="sandbox")
    told.trace.close()
    return path


def long_run(path: Path, turns: int) -> Path:
    """A run of so many turns, its tokens counted by cause as the loop counts them.

    Its events are recorded one by one: to hash the whole prompt for each request would be quadratic in turns.
    """
    trace = Trace(path, clock=lambda: 0.0)
    trace.start(task="long", question="Count to the end.", agent="tool-loop", model="m", versions={})
    added = _store(trace, 0, say("system", "Work in Python. " * 12, "system"), say("user", "Count it.", "task"))
    trace.record("settings", hash="s", tools=(), stop=(), reply_schema=None)
    new: list[list[object]] = [["template", 0, 0, 8], ["system", 0, 0, 60], ["task", 0, 1, 12]]
    tokens, kept, base = 80, 0, None
    for turn in range(1, turns + 1):
        code = (
            f"# step {turn}: take the next block of lines and count what is in it\n"
            f"rows = [line for line in lines[{turn * 40}:{turn * 40 + 40}] if 'status=paid' in line]\n"
            f"counts[{turn}] = sum(int(re.search(r'amount=(\\d+)', row)[1]) for row in rows)\n"
            f"print({turn}, len(rows), counts[{turn}])"
        )
        text = f"Block {turn} is next.\n\n```python\n{code}\n```"
        failed = turn % 25 == 0
        out = "IndexError: list index out of range" if failed else f"{turn} 17 {turn * 7919 % 10007}\n" * 3
        who = {"node": "0", "depth": 0, "turn": turn}
        trace.record("request", digest=f"q{turn}", base=base, added=added, settings="s", purpose="agent", **who)
        charged = {
            "call": turn, "purpose": "agent", "exact": True, "sent": 2 * turn - 2 if turn > 1 else 0,
            "after": turn - 1, "parts": {"kept": kept, "new": new},
        }  # fmt: skip
        usage = Usage(tokens, 90, max(0, tokens - 133), cost=None)
        trace.record("reply", request=f"q{turn}", reply=Reply(text, usage=usage, seconds=0.8), charged=charged, **who)
        seen = Observation(out, Failure("runtime", out) if failed else None, "repl_output", seconds=0.2)
        trace.record("turn", actions=(RunCode(code),), observations=(seen,), seconds=1.0, **who)
        nudge = Span("\nGo on.", "scaffold:nudge")
        result = Message("user", (Span(out, "repl_output"), nudge), turn=turn)
        added = _store(trace, turn, say("assistant", text, "assistant", turn=turn), result)
        base, kept = f"q{turn}", kept + len(new)
        place = 2 * turn
        new = [
            ["template", turn, place, 5], ["assistant", turn, place, 90], ["template", turn, place + 1, 5],
            ["repl_output", turn, place + 1, 24], ["scaffold:nudge", turn, place + 1, 9],
        ]  # fmt: skip
        tokens += 133
    usage = Usage(sum(80 + 133 * k for k in range(turns)), 90 * turns, None, turns)
    trace.record("run_end", node="0", depth=0, stop="answered", reason="", answer="done", usage=usage, steps=turns)
    trace.close()
    return path


def _store(trace: Trace, turn: int, *messages: Message) -> list[str]:
    for number, message in enumerate(messages):
        trace.record("message", hash=f"m{turn}.{number}", message=message)
    return [f"m{turn}.{number}" for number in range(len(messages))]
