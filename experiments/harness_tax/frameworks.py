"""Python frameworks on the task, each with the same three tools: `frameworks.py NAME URL FOLDER TASK`.

A framework brings a loop and a frame, no tools of its own, so its row is the frame and these three.  It runs in an
environment of its own, where this package is not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TURNS = 60  # more than the script takes


def tools_in(folder: Path) -> list[Callable[..., str]]:
    """The tools, as plain documented functions."""

    def read_file(path: str) -> str:
        """Read a file of the repository.

        Args:
            path: The file's path.
        """
        return (folder / path).read_text()

    def run_command(command: str) -> str:
        """Run a shell command in the repository and return what it prints.

        Args:
            command: The command.
        """
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def edit_file(path: str, old: str, new: str) -> str:
        """Replace a text that occurs once in a file.

        Args:
            path: The file's path.
            old: The text to replace.
            new: The text to put in its place.
        """
        file = folder / path
        file.write_text(file.read_text().replace(old, new))
        return "done"

    return [read_file, run_command, edit_file]


def pydantic_ai(url: str, tools: list[Any], task: str) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="any"))
    return Agent(model, tools=tools).run_sync(task, usage_limits=UsageLimits(request_limit=TURNS)).output


def openai_agents(url: str, tools: list[Any], task: str) -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=url, api_key="any"))
    agent = Agent("agent", tools=[function_tool(t) for t in tools], model=model)
    return Runner.run_sync(agent, task, max_turns=TURNS).final_output


def smolagents(url: str, tools: list[Any], task: str) -> Any:
    from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool

    model = OpenAIModel("scripted", api_base=url, api_key="any")
    return ToolCallingAgent([tool(t) for t in tools], model, max_steps=TURNS, verbosity_level=LogLevel.OFF).run(task)


def langgraph(url: str, tools: list[Any], task: str) -> Any:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=url, api_key="any")
    done = create_agent(model, tools).invoke({"messages": [("user", task)]}, {"recursion_limit": 3 * TURNS})
    return done["messages"][-1].content


def deepagents(url: str, tools: list[Any], task: str) -> Any:
    """With its own tools on the folder and its shell, which are part of it, instead of the three."""
    from deepagents import create_deep_agent
    from deepagents.backends import LocalShellBackend
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=url, api_key="any")
    agent = create_deep_agent(model, backend=LocalShellBackend(Path.cwd(), virtual_mode=False, inherit_env=True))
    done = agent.invoke({"messages": [("user", task)]}, {"recursion_limit": 10 * TURNS})
    return done["messages"][-1].content


def smolagents_code(url: str, tools: list[Any], task: str) -> Any:
    from smolagents import CodeAgent, LogLevel, OpenAIModel, tool

    model = OpenAIModel("scripted", api_base=url, api_key="any")
    return CodeAgent([tool(t) for t in tools], model, max_steps=TURNS, verbosity_level=LogLevel.OFF).run(task)


def rlms(url: str, tools: list[Any], task: str) -> Any:
    from rlm import RLM

    named = {t.__name__: {"tool": t, "description": t.__doc__} for t in tools}
    server = {"model_name": "scripted", "base_url": url, "api_key": "any"}
    loop = RLM(backend="openai", backend_kwargs=server, max_iterations=TURNS, custom_tools=named)
    return loop.completion(task, root_prompt=task).response


def minrlm(url: str, tools: list[Any], task: str) -> Any:
    """It takes no tools: its code is plain Python."""
    from minrlm import RLM

    return RLM("scripted", base_url=url, api_key="any", max_iterations=TURNS).completion(task).response


def dspy_react(url: str, tools: list[Any], task: str) -> Any:
    import dspy

    with dspy.context(lm=dspy.LM("openai/scripted", api_base=url, api_key="any", cache=False)):
        return dspy.ReAct("question -> answer: str", tools=tools, max_iters=TURNS)(question=task).answer


def dspy_rlm(url: str, tools: list[Any], task: str) -> Any:
    """With its local interpreter: the default one downloads modules at its first start."""
    import dspy
    from dspy.primitives.local_interpreter import LocalInterpreter

    with dspy.context(lm=dspy.LM("openai/scripted", api_base=url, api_key="any", cache=False)):
        made = dspy.RLM("question -> answer: str", max_iters=TURNS, tools=tools, interpreter_factory=LocalInterpreter)
        return made(question=task).answer


def mellea(url: str, tools: list[Any], task: str) -> Any:
    import asyncio

    from mellea.backends.openai import OpenAIBackend
    from mellea.backends.tools import MelleaTool
    from mellea.stdlib.context import ChatContext
    from mellea.stdlib.frameworks.react import react

    backend = OpenAIBackend("scripted", base_url=url, api_key="any")
    made = [MelleaTool.from_callable(t) for t in tools]
    done = react(goal=task, context=ChatContext(), backend=backend, tools=made, loop_budget=TURNS)
    return asyncio.run(done)[0].value


_CALLING = (pydantic_ai, openai_agents, smolagents, langgraph, deepagents, mellea)
_WRITING = (smolagents_code, rlms, minrlm, dspy_react, dspy_rlm)
FRAMEWORKS = {f.__name__: f for f in (*_CALLING, *_WRITING)}


def main(name: str, url: str, folder: str, task: str) -> None:
    sys.path.remove(str(Path(__file__).resolve().parent))  # our agents.py is not the SDK of that name
    print(FRAMEWORKS[name](url, tools_in(Path(folder)), task))


if __name__ == "__main__":
    main(*sys.argv[1:])
