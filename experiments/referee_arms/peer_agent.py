"""Another framework's loop as an arm of a study: its driver runs in its own environment, its model calls are metered.

Every call goes through the account, the ledger and the trace of the episode, so its row has the same fields as ours.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting import Account, Budget, Ledger
from rlm_loop.actions import Action, Answer, CallTool, FinalAnswer, Observation, RunCode
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.run import record_end
from rlm_loop.messages import Prompt, Reply
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import Model, get_model
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.repl import describe_context
from rlm_loop.repl.contexts.context import TOLD
from rlm_loop.tasks import Task
from rlm_loop.traces import Trace

PEERS = Path(__file__).resolve().parents[1] / "peers"
#: The questions about frames and tables name pandas; what it needs is pinned beside this file.
PANDAS, PINS = "pandas==3.1.1", Path(__file__).resolve().parent / "constraints.txt"
CONTEXT = "context.csv"
NO_CHECK = (
    "\n\nThere is no check() here, and the function is not defined: answer with the corrected function in a ```python "
    "block."
)
SECONDS = 1800.0  # for one task, before its driver is ended
_CODE = re.compile(r"<code>\s*(.*?)\s*(?:</code>|\Z)", re.DOTALL)

#: Runs a job in a folder and returns what the loop came to: `answer` (text or `None`), `error`.
Play = Callable[[Mapping[str, Any], Path], Mapping[str, Any]]


@dataclass
class Counted(Model):
    """The model as the framework reaches it: each call is one turn of the episode, charged before it is answered."""

    metered: Meter
    replies: list[Reply] = field(default_factory=list[Reply])
    _one: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return self.metered.model.name

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        with self._one:
            reply = self.metered.complete(prompt, turn=len(self.replies) + 1)
            self.replies.append(reply)
            return reply


@dataclass(frozen=True)
class PeerAgent:
    """A contender of `experiments/peers` as an arm; `play` runs its job (default: its driver, in its environment)."""

    peer: str
    model: Any = "local"
    seed: int | None = None
    steps: int = 5
    max_tokens: int = 500
    play: Play | None = None

    @property
    def name(self) -> str:
        return self.peer

    def settings(self) -> dict[str, Any]:
        packages = [*contender(self.peer).packages, PANDAS]
        return {
            "agent": "PeerAgent",
            "peer": self.peer,
            "packages": packages,
            "steps": self.steps,
            "max_tokens": self.max_tokens,
        }

    def attempt(self, task: Task, *, trace: str | Path | None = None) -> Outcome:
        """One task.  Raises `ModuleNotFoundError` where the framework cannot be installed: nothing is judged then."""
        play = self.play or by_driver(self.peer)
        account, ledger = Account(Budget()), Ledger()
        with Trace(trace) as record, tempfile.TemporaryDirectory(prefix="peer-task-") as made:
            question = in_folder(task, Path(made))
            record.start(
                task=task.id, question=question, agent=self.peer, model=self.model_name, settings=self.settings()
            )
            metered = Meter(get_model(self.model), account, ledger, record, max_tokens=self.max_tokens)
            model = Counted(metered)
            with metered_endpoint(model) as url:
                done = play({**self._job(question), "url": str(url)}, Path(made))
            turns = turns_of(model.replies, done.get("answer"))
            for turn in turns:
                seen = {"actions": turn.actions, "observations": turn.observations, "seconds": turn.seconds}
                record.record("turn", node=metered.node.path, depth=0, turn=turn.index, **seen)
            outcome = self._outcome(done, turns, account, ledger, record, question)
            record_end(outcome, metered)
            return outcome

    @property
    def model_name(self) -> str:
        return str(getattr(self.model, "name", self.model))

    def _job(self, question: str) -> dict[str, Any]:
        return {
            "key": f"key-{self.peer}",
            "model": "metered",
            "task": question,
            "observation": "",
            "tool": "python",
            "imports": ["*"],  # its interpreter would refuse pandas, and even csv
            "steps": self.steps,
            "max_tokens": self.max_tokens,
            "temperature": 0.0,
            "seed": self.seed or 0,
            "small": True,
        }

    def _outcome(
        self,
        done: Mapping[str, Any],
        turns: tuple[Turn, ...],
        account: Account,
        ledger: Ledger,
        record: Trace,
        question: str,
    ) -> Outcome:
        answered = done.get("answer") is not None and bool(turns)
        stop = Stop.ANSWERED if answered else Stop.FAILED if done.get("error") else Stop.STEPS
        return Outcome(
            answer=value_of(done["answer"]) if answered else None,
            stop=stop,
            turns=turns,
            usage=ledger.usage,
            ledger=ledger,
            answer_form="text" if answered else None,
            reason=str(done.get("error") or ""),
            seconds=account.seconds,
            working_seconds=account.working_seconds,
            trace=record.path,
            question=question,
            model=self.model_name,
            agent=self.peer,
            run=record.run,
        )


def in_folder(task: Task, folder: Path) -> str:
    """Puts what the task has into the folder, and returns the question with what differs here said."""
    for name, content in task.files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    context = task.material()
    if context is not None:
        context.to_csv(folder / CONTEXT, index=False)
        told = describe_context(context).removeprefix(TOLD).strip()
        told = told.replace("context.head()", f"pd.read_csv({CONTEXT!r}).head()")
        return f"{task.question}\n\nThe file {CONTEXT} in the working folder holds {told}"
    return task.question + (NO_CHECK if task.setup else "")


def turns_of(replies: list[Reply], answer: Any) -> tuple[Turn, ...]:
    """The replies as turns: the code and the calls that they hold, and the answer in the last one."""
    turns: list[Turn] = []
    for index, reply in enumerate(replies, 1):
        actions: list[Action] = [RunCode(code) for code in _CODE.findall(reply.text) if code]
        actions += [CallTool(call.name, call.arguments) for call in reply.tool_calls]
        observations = [Observation(cause="repl_output" if isinstance(a, RunCode) else "tool_result") for a in actions]
        if index == len(replies) and answer is not None:
            given = value_of(answer)
            actions.append(Answer(given))
            observations.append(Observation(answer=FinalAnswer(given)))
        turns.append(Turn(index, reply, tuple(actions), tuple(observations), reply.seconds))
    return tuple(turns)


def value_of(answer: Any) -> Any:
    """The answer as a value where its text is a plain literal: every driver sends text."""
    try:
        return ast.literal_eval(answer.strip()) if isinstance(answer, str) else answer
    except (ValueError, SyntaxError):
        return answer.strip()


def contender(peer: str) -> Any:
    """A contender by its name; its modules are imported as the commands of `experiments/peers` import theirs."""
    if str(PEERS) not in sys.path:
        sys.path.insert(0, str(PEERS))  # before a package called build, say
    from contenders import chosen  # type: ignore[import-not-found]

    return chosen(peer)[0]


def by_driver(peer: str) -> Play:
    """The driver of a contender, in its environment with pandas beside it, made at the first use."""
    found = contender(peer)
    one = replace(found, environment=f"{found.environment}_pandas", packages=(*found.packages, PANDAS), pins=PINS)

    def play(job: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
        from build import CACHE, python_of  # type: ignore[import-not-found]
        from driving import drive  # type: ignore[import-not-found]

        try:
            python_of(one, CACHE)
        except RuntimeError as error:
            raise ModuleNotFoundError(str(error)) from None
        return drive(one, job, CACHE, folder, SECONDS)

    return play
