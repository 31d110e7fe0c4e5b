"""The loop: one agent, one task, until an answer or a limit.  Strategy, formats and limits live elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.actions import Action, CallTool, FinalAnswer, Malformed, Note, RunCode
from rlm_loop.agents.environment import Environment, Unfinished
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.stopping import stop_reason
from rlm_loop.dialects.answer_text import is_prose
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.earlier import FIRST_ATTEMPT, AttemptContext
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.messages import Prompt
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.tools.calls import describe
from rlm_loop.tools.hooks import notify
from rlm_loop.traces.trace import TraceError


class Interrupted(KeyboardInterrupt):
    """The user interrupted a run; `outcome` holds what was done until then."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("the run was interrupted; .outcome holds what was done until then")
        self.outcome = outcome

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: nobody who pressed the stop button wants to read where it struck."""
        done = f"interrupted after {self.outcome.steps} turn{'' if self.outcome.steps == 1 else 's'}"
        where = getattr(self, "__notes__", ["what was done is in sys.last_value.outcome"])
        return [f"Interrupted: {'; '.join([done, *where])}"]


def run(
    dialect: Dialect,
    problem: Problem,
    environment: Environment,
    model: Metered,
    *,
    hooks: Sequence[object] = (),
    collect: str = "",
    agent: str = "",
    history: Callable[[Prompt, Sequence[Turn]], Prompt] = lambda prompt, turns: prompt,
    fit: Callable[[Prompt, Turn], Turn] = lambda prompt, turn: turn,
    turn_offset: int = 0,
    earlier: AttemptContext = FIRST_ATTEMPT,
) -> Outcome:
    """Drive one agent through one problem.

    `history` makes the prompt that is sent of the one that grew, `fit` clips what a turn is to show to
    what is left of the model's window (`agents/window.py`), `turn_offset` is how many turns earlier
    attempts at the same task took: this one's are numbered on from there.  `earlier` is what the run is given of them.
    Raises `Interrupted` on Ctrl-C; an exception of a model or of ours goes on up with `outcome`, `usage`, `trace`
    and `partial_answer` set on it.
    """
    turns: list[Turn] = []
    over: tuple[Stop, str] | None = None
    node = model.node.path

    def left() -> int | None:
        """Turns that this run may still take; `None` where nobody limits them."""
        steps = model.account.budget.steps  # a fork sets its limits on the way
        return None if steps is None else max(0, int(steps) - len(turns))

    def finish(stop: Stop, reason: str, artifact: Any) -> Outcome:
        return _finish(stop, reason, turns, problem, artifact, model, agent, environment)

    def failed(error: Exception) -> Outcome:
        return finish(Stop.FAILED, describe(error), environment.partial_artifact())

    try:
        prompt = earlier.prompt(dialect, problem, environment.tools)
        while (over := stop_reason(turns, model.account)) is None:
            start, number = model.account.seconds, turn_offset + len(turns) + 1
            if hooks:
                notify(hooks, "on_step_start", turn_index=number, node=node, steps_remaining=left())
            prompt = history(prompt, turns)  # here, so that nothing is spent on a prompt that is never sent
            reply = model.complete(prompt, turn=number)  # billed before it is read
            actions = tuple(dialect.parse_reply(reply, environment.tools))  # total: a bad reply is an action too
            unfinished: Unfinished | None = None
            try:
                observations = environment.perform(actions)
            except Unfinished as stopped:  # what was done until Ctrl-C is a turn too
                observations, unfinished = stopped.observations, stopped
            turn = fit(prompt, Turn(number, reply, actions, observations, model.account.seconds - start))
            turns.append(turn)
            who = {"node": node, "depth": model.node.depth, "turn": number}
            seen = {"actions": actions, "observations": turn.observations, "seconds": turn.seconds}
            model.trace.record("turn", **who, **seen, spent=model.account.spent, steps_remaining=left())
            if unfinished is not None:
                raise unfinished
            if hooks:
                notify(hooks, "on_step_end", turn=turn, node=node, steps_remaining=left())
            prompt += dialect.format_turn(turn)
    except BudgetSpent as spent:
        over = Stop(spent.kind), spent.reason
    except KeyboardInterrupt:
        raise Interrupted(finish(Stop.INTERRUPTED, "interrupted", environment.partial_artifact())) from None
    except Exception as error:
        attach(error, failed(error))
        raise
    try:
        artifact = environment.collect(collect)
    except Exception as error:  # such as a workspace that is gone: what was done until then is not lost with it
        attach(error, failed(error))
        raise
    return finish(*over, artifact)


def _finish(
    stop: Stop,
    reason: str,
    turns: Sequence[Turn],
    problem: Problem,
    artifact: Any,
    model: Metered,
    agent: str,
    environment: Environment,
) -> Outcome:
    model.node.scope.check()  # for a sub-agent that nobody waits for any more, there is nothing to report
    model.node.end_children()
    given, source = best_answer(turns)
    account = model.account
    outcome = Outcome(
        answer=None if given is None else given.value,
        stop=stop,
        turns=tuple(turns),
        usage=model.ledger.usage,
        ledger=model.ledger,
        artifact=artifact,
        answer_form=None if given is None else given.form,
        evidence=environment.check.evidence,
        over_budget=account.over(),
        reason=reason,
        seconds=account.seconds,
        working_seconds=account.working_seconds,
        trace=model.trace.path,
        run=model.trace.run,
        question=problem.question,
        model=model.name,
        agent=agent,
        isolation=environment.isolation,
    )
    try:
        record_end(outcome, model, answer_from=source)
    except TraceError as error:  # the trace's disk is full, say: what was done is not lost with it
        if stop not in (Stop.FAILED, Stop.INTERRUPTED):
            attach(error, outcome)
            raise
        return replace(outcome, notes=(*outcome.notes, f"the trace has no end: {error}"))
    return outcome


def record_end(outcome: Outcome, model: Metered, **more: Any) -> None:
    """The event of the end of a run, or of several attempts as one."""
    names = "stop reason answer answer_form artifact usage over_budget seconds working_seconds steps isolation"
    told = {name: getattr(outcome, name) for name in names.split()}
    model.trace.record("run_end", node=model.node.path, depth=model.node.depth, **told, **more)


def best_answer(turns: Sequence[Turn]) -> tuple[FinalAnswer | None, str | None]:
    """The answer given; else the last pending one; else the last reply that is prose and asked for nothing.

    Code and calls of an unfinished turn are no answer: they are in `Outcome.last_reply`.  Beside it stands where it is
    from: `given`, `pending`, `prose` or nowhere (`None`).
    """
    if turns and turns[-1].answer is not None:
        return turns[-1].answer, "given"
    if (pending := next((t.pending for t in reversed(turns) if t.pending is not None), None)) is not None:
        return pending, "pending"
    texts = (without_reasoning(t.reply.text).strip() for t in reversed(turns) if not any(map(_no_answer, t.actions)))
    prose = next((text for text in texts if is_prose(text)), None)
    return (None, None) if prose is None else (FinalAnswer(prose, "text"), "prose")


def _no_answer(action: Action) -> bool:
    """It acts, or it says that there is no answer."""
    gives_up = isinstance(action, Malformed) and (Note.REFUSAL in action.notes or Note.BLOCKED in action.notes)
    return gives_up or isinstance(action, (RunCode, CallTool))


def attach(error: BaseException, outcome: Outcome) -> None:
    """Leave with an exception what was done until it: `outcome`, `usage`, `trace` and `partial_answer`."""
    for name, value in (
        ("outcome", outcome),
        ("usage", outcome.usage),
        ("trace", outcome.trace),
        ("partial_answer", outcome.answer),
    ):
        with contextlib.suppress(AttributeError):  # an exception class with slots keeps what it can
            setattr(error, name, value)
