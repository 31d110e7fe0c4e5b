"""Spans of a run while it goes on: a hook of an agent that sends each span as soon as it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlm_loop.formats.traces.from_trace import conversation_of
from rlm_loop.formats.traces.otel.exporting import exporter_to, readable
from rlm_loop.formats.traces.otel.spans import spans_of
from rlm_loop.outcome import Outcome
from rlm_loop.traces.reader import read, records_of
from rlm_loop.traces.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext


@dataclass
class _Run:
    """A run that goes on: where it is recorded, within which span of the caller's, and the spans that were sent."""

    trace: Trace
    within: SpanContext | None
    sent: set[str] = field(default_factory=set[str])


class OpenTelemetryHook:
    """Given to an agent (`hooks=[OpenTelemetryHook("http://localhost:6006")]`), sends the spans of its runs.

    They are those that `rlm-loop trace export --to otel` makes of the trace, under the same ids.  Where the caller has
    a span of its own open when a run starts, the run is a part of it.  `exporter` is any exporter of OpenTelemetry,
    instead of an address.  What is recorded is read again at the end of a turn or a sub-call, once in `every` seconds
    and for at most a tenth of the time (0: each time), and sent by a thread of OpenTelemetry's; the end of a run waits
    until all is sent.  One hook serves runs in several
    threads.  An address that does not answer is a warning of OpenTelemetry's and never ends a run.  Raises
    `ImportError` without the extra `otel`.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        content: bool = True,
        exporter: SpanExporter | None = None,
        every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if (address is None) == (exporter is None):
            raise ValueError("give an address or an exporter")
        exporter = exporter or exporter_to(str(address))
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._processor = BatchSpanProcessor(exporter)
        self._content, self._every, self._clock = content, every, clock
        self._runs: dict[str, _Run] = {}
        self._next = float("-inf")
        self._lock = threading.Lock()

    def on_run_start(self, *, trace: Trace) -> None:
        from opentelemetry.trace import get_current_span

        outer = get_current_span().get_span_context()
        with self._lock:
            self._runs[trace.run] = _Run(trace, outer if outer.is_valid else None)

    def on_step_end(self) -> None:
        self._tell()

    def on_subcall_end(self) -> None:
        self._tell()

    def on_run_end(self, *, outcome: Outcome) -> None:
        self._over(outcome.run)

    def on_run_error(self, *, trace: Trace) -> None:
        self._over(trace.run)

    def flush(self) -> None:
        """Wait until all that was read is sent."""
        self._processor.force_flush()

    def close(self) -> None:
        """Send what is left and end the thread that sends."""
        self._processor.shutdown()

    def _tell(self) -> None:
        with self._lock:
            now = self._clock()
            if now < self._next:
                return
            for run in self._runs.values():
                self._send(run, whole=False)
            after = self._clock()
            self._next = after + self._every + 9 * (after - now) if self._every else now

    def _over(self, run: str | None) -> None:
        with self._lock:
            ended = self._runs.pop(str(run), None)
            if ended is not None:
                self._send(ended, whole=True)
        self.flush()

    def _send(self, run: _Run, *, whole: bool) -> None:
        """Send the spans that are over, or all of a run that is, but for those that were sent."""
        record = (
            read(run.trace.path, run=run.trace.run)
            if run.trace.path is not None
            else next(found for found in records_of(run.trace.events) if found.id == run.trace.run)
        )
        spans = spans_of(conversation_of(record), content=self._content)
        new = [span for span in spans if (whole or span.over) and span.id not in run.sent]
        run.sent |= {span.id for span in new}
        ready: list[Any] = readable(new, run.within)
        for span in ready:
            self._processor.on_end(span)
