import sys

from rlm_loop import Study, Task, ToolLoopAgent, arm


@arm
def smol(task, endpoint):
    from smolagents import CodeAgent, OpenAIModel

    return CodeAgent([], OpenAIModel("any", api_base=endpoint, api_key="any")).run(task.question)


print(Study("two", {"smol": smol, "ours": ToolLoopAgent()}, [Task("six", "2 * 3?", 6)], model=sys.argv[1]).run("runs"))
