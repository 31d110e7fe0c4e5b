"""What other frameworks say around a task, byte for byte, each with the package, version and file that it is from.

`{...}` in a template is what the framework itself fills in.  `tests/dialects/peer_texts.json` holds the same texts as
quoted from the packages, with the SHA-256 of each file; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Where a text is from: `file` is the path in the package as it is installed."""

    package: str
    version: str
    file: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}, {self.file}"


MELLEA = Source("mellea", "0.8.0", "mellea/templates/prompts/default/ReactInitiator.jinja2")
MELLEA_THOUGHT_FILE = Source("mellea", "0.8.0", "mellea/templates/prompts/default/ReactThought.jinja2")
RLMS = Source("rlms", "0.1.3", "rlm/utils/prompts.py")
RLMS_VARIABLES = Source("rlms", "0.1.3", "rlm/utils/parsing.py")
SMOLAGENTS = Source("smolagents", "1.26.0", "smolagents/memory.py")
DSPY_HISTORY = Source("dspy", "3.4.1", "dspy/primitives/repl_types.py")
DSPY_ITERATION = Source("dspy", "3.4.1", "dspy/predict/rlm.py")
DSPY_ADAPTER = Source("dspy", "3.4.1", "dspy/adapters/chat_adapter.py")
INSPECT = Source("inspect-ai", "0.3.285", "inspect_ai/agent/_types.py")
FAST_RLM = Source("fast-rlm", "0.5.0", "fast_rlm/_engine/src/subagents.ts")
SEED = Source("the project's own seed", "", "Minimal ReAct Agent (design note)")

MELLEA_INITIATOR = (
    "Use the provided tools to complete the assigned goal as best you can. Use the following process:\n"
    "- Goal: the input question you must answer / the task you must complete\n"
    "- Thought: think about what to do next\n"
    "- Action: choose an action and call that tool\n"
    "- Observe: the result of the action\n"
    "... (this Thought/Action/Action Input/Observation can repeat N times)\n"
    "- Thought: I now know the final answer\n"
    "\n"
    "When the final answer is found, use the `final_answer` tool with the final value. A tool call is always required "
    "as the final step. If you catch yourself repeating the same thing, call the `final_answer` tool.\n"
    "\n"
    "Goal: "
)
MELLEA_THOUGHT = (
    "Think about what to do next and take the next step in the process. If a tool call is necessary to collect "
    "additional information call it. If you are done and have a final answer, call the `final_answer` tool."
)

RLMS_SAFEGUARD = (
    "You have not interacted with the REPL environment or seen your prompt / context yet. "
    "Look at the context first; do not provide a final answer yet.\n\n"
)
RLMS_TURN = "Turn {iter_1}/{max_iter}:"
RLMS_NAMES = "REPL variables: {names}\n"

SMOLAGENTS_CALLING = "Calling tools:\n{calls}"
SMOLAGENTS_RETRY = (
    "Now let's retry: take care not to repeat previous errors! If you have retried several times, try a completely "
    "different approach.\n"
)

DSPY_EMPTY = "You have not interacted with the REPL environment yet."
DSPY_STEP = "=== Step {number} ===\n"
DSPY_REASONING = "Reasoning: {reasoning}\n"
DSPY_CODE = "Code:\n```python\n{code}\n```\n"
DSPY_OUTPUT = "Output ({length:,} chars):\n{output}"
DSPY_FIELD = "[[ ## {name} ## ]]\n"
DSPY_REMINDER = (
    "Respond with the corresponding output fields, starting with the field `[[ ## reasoning ## ]]`, then "
    "`[[ ## code ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`."
)

INSPECT_CONTINUE = (
    "\nPlease proceed to the next step using your best judgement. If you believe you have completed the task, please "
    "call the `{submit}()` tool with your final answer.\n"
)

FAST_RLM_BANNER = (
    "[Steps remaining after this one: {remaining} / {most}]\n"
    "[You can call a subagent via llm_query(...) to finish smaller tasks if needed. "
    "Use a divide-and-conquer strategy.]\n"
)
FAST_RLM_NO_CODE = "Error: We could not extract code because you may not have used repl block!"

SEED_TEMPLATE = (
    "You are a concise coding agent. Use tools when necessary.\n"
    "Format:\n"
    "- Think: brief reasoning\n"
    '- Action: {"tool":"name","args":{...}} or "finish"\n'
    "- Observation: will be provided by system\n"
    "Rules:\n"
    "- Prefer minimal steps, deterministic outputs, English logs.\n"
    '- If enough info, choose "finish" with the final answer.'
)
SEED_ACK = "Observed results. Continuing."
