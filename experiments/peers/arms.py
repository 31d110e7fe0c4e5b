"""Four projects' agents as arms of a study beside ours: each is a function of a task and an endpoint.

Each needs its project (`smolagents[openai]`, `dspy`, `rlms`, `mini-swe-agent`) and is imported when it is called.

    Study("peers", {"smolagents": smolagents_code, "code": ToolLoopAgent()}, tasks, model="local").run("runs/peers")
"""

from __future__ import annotations

from typing import Any

from rlm_loop import Task, arm


@arm
def smolagents_code(task: Task, endpoint: str) -> Any:
    from smolagents import CodeAgent, LogLevel, OpenAIModel

    model = OpenAIModel("any", api_base=endpoint, api_key="any")
    agent = CodeAgent([], model, verbosity_level=LogLevel.OFF)
    return agent.run(task.question, additional_args=None if task.context is None else {"context": task.context})


@arm
def dspy_rlm(task: Task, endpoint: str) -> Any:
    import dspy
    from dspy.primitives.local_interpreter import LocalInterpreter  # its default one downloads Deno's modules

    lm = dspy.LM("openai/any", api_base=endpoint, api_key="any", cache=False)
    loop = dspy.RLM("context, question -> answer: str", interpreter_factory=LocalInterpreter)
    with dspy.context(lm=lm):
        return loop(context=task.context or "", question=task.question).answer


@arm
def rlms_rlm(task: Task, endpoint: str) -> Any:
    from rlm import RLM

    loop = RLM(backend="openai", backend_kwargs={"model_name": "any", "base_url": endpoint, "api_key": "any"})
    return loop.completion(task.context or task.question, root_prompt=task.question).response


@arm
def mini_swe_agent(task: Task, endpoint: str) -> Any:
    import yaml
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.config import get_config_path
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    texts = yaml.safe_load(get_config_path("mini_textbased.yaml").read_text())
    reached = {"api_base": endpoint, "api_key": "any"}
    model = LitellmTextbasedModel(model_name="openai/any", model_kwargs=reached, cost_tracking="ignore_errors")
    own = {key: texts["agent"][key] for key in ("system_template", "instance_template")}
    return DefaultAgent(model, LocalEnvironment(), **own).run(task.question).get("submission")
