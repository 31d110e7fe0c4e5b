"""A recorded run as a file of another tool, or as spans.

>>> export_trace("run.jsonl", "inspect", "run.eval")  # doctest: +SKIP
"""

from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.convert import export_trace, send_trace
from rlm_loop.formats.traces.convert_study import export_study
from rlm_loop.formats.traces.errors import FormatError
from rlm_loop.formats.traces.from_trace import conversation_of

__all__ = [
    "AgentConversation",
    "FormatError",
    "RunConversation",
    "Step",
    "conversation_of",
    "export_study",
    "export_trace",
    "send_trace",
]
