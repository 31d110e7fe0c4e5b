"""How a patch for an instance is judged: by running its tests here, where there is an environment, else not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlm_loop.tasks.base import Attempt, Score
from rlm_loop.tasks.swebench.instance import Instance
from rlm_loop.workspace import Workspace

if TYPE_CHECKING:
    from rlm_loop.workspace.testing import Isolation

#: An interpreter of an environment that has the repository's dependencies: one for all, or by instance id,
#: "OWNER/NAME@VERSION" or "OWNER/NAME"; or a function of the instance.  `None` for none.
Environment = str | Mapping[str, str] | Callable[[Instance], str | None] | None

NOT_EVALUATED = "not evaluated; run `rlm-loop swebench evaluate`"
_PYTEST = re.compile(r"[^\s:]+\.py(::.+)?", re.DOTALL)


def python_for(environment: Environment, instance: Instance) -> str | None:
    """The interpreter whose environment the instance's tests run in; `None` where none was given."""
    if environment is None or isinstance(environment, str):
        found = environment
    elif callable(environment):
        found = environment(instance)
    else:
        names = (instance.instance_id, f"{instance.repo}@{instance.version}", instance.repo)
        found = next((environment[name] for name in names if name in environment), None)
    return found and os.path.expanduser(found)


@dataclass(frozen=True)
class InstanceScorer:
    """Judges patches for one instance; an attempt is judged by its artifact, the diff.

    Without `python` nothing is run and the score's `resolved` is `None`: it is the official harness that has to say.
    `timeout` is in seconds, for one run of the tests; `place` is where they run, see `testing.Isolation`.
    """

    instance: Instance
    workspace: Callable[[], Workspace] = field(repr=False)
    python: str | None = None
    timeout: float = 1800.0
    place: Isolation = "auto"

    def __call__(self, attempt: Attempt) -> Score:
        patch = attempt.artifact
        if not isinstance(patch, str) or not patch.strip():
            return Score(False, 0.0, "empty patch: nothing was changed")
        if self.python is None:
            return Score(None, 0.0, NOT_EVALUATED)
        instance = self.instance
        if not instance.fail_to_pass:
            return Score(None, 0.0, f"not evaluated: {instance.instance_id} lists no FAIL_TO_PASS")
        foreign = [t for t in (*instance.fail_to_pass, *instance.pass_to_pass) if not _PYTEST.fullmatch(t)]
        if foreign:
            return Score(
                None, 0.0, f"{NOT_EVALUATED}: here only pytest's tests can be run, and {foreign[0][:60]!r} is none"
            )
        from rlm_loop.workspace.evaluation import evaluate

        found = evaluate(
            self.workspace,
            patch,
            fail_to_pass=instance.fail_to_pass,
            pass_to_pass=instance.pass_to_pass,
            test_patch=instance.test_patch,
            python=self.python,
            timeout=self.timeout,
            place=self.place,
        )
        return found.score()
