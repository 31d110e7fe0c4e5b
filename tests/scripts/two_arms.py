import sys

from rlm_loop import LeanAgent, Study, Task, ToolLoopAgent

tasks = [Task(f"sum-{n}", f"What is the sum of 1 to {n}?", n * (n + 1) // 2) for n in range(5, 11)]
study = Study("sums", {"code": ToolLoopAgent(), "lean": LeanAgent()}, tasks, model=sys.argv[1])
print(study.power())

results = study.run("runs/sums")
print(results.compare("lean"))
results.plot().savefig("sums.png")
