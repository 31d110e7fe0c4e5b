"""A recorded run as a file of another tool, and a file of another tool as a recorded run.

>>> from rlm_loop.formats.traces import export_trace, import_trace
>>> export_trace("run.jsonl", "atif", "run.atif.json")  # doctest: +SKIP
>>> [conversation] = import_trace("run.atif.json")  # doctest: +SKIP
"""

from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.convert import export_trace, import_trace, send_trace
from rlm_loop.formats.traces.convert_study import export_study, send_study
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
    "import_trace",
    "send_study",
    "send_trace",
]
