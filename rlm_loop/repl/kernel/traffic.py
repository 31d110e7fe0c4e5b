"""Pass messages between the host, which speaks the worker's frames, and the running kernel."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rlm_loop.repl.kernel.process import Kernel
from rlm_loop.repl.kernel.side_channel import Side
from rlm_loop.repl.worker import CAPTURED, Captures, whole_lines

BOOTSTRAP = """
import sys, types
package = sys.modules["_rlm_loop"] = types.ModuleType("_rlm_loop")
package.__path__ = [{folder!r}]
from _rlm_loop.kernel.side import begin
package.repl = begin({path!r}, {key!r}, {generation}, {options!r})
"""
SERVE = "__import__('sys').modules['_rlm_loop'].repl.serve_one({number})"
_TICK = 500  # milliseconds between looks at whether the kernel lives
_SETTLE = 50  # milliseconds of silence after which another try is made


@dataclass
class Host:
    """The host: frames from it and to it, and what it is to know of the kernel."""

    input: int
    tell: Callable[[Mapping[str, Any]], None]
    ready: threading.Event = field(default_factory=threading.Event)
    """Set while the kernel can run cells."""
    kernel_pid: int | None = None


@dataclass
class Talk:
    """One kernel, and what is going on with it."""

    kernel: Kernel
    side: Side
    first: str
    requests: dict[str, int] = field(default_factory=dict[str, int])
    """Ids of requests under way, and the jobs that they are for."""
    waiting: list[bytes] = field(default_factory=list[bytes])
    """Jobs that came before the kernel was ready."""
    hello: dict[str, Any] | None = None
    heard: bool = False
    ready: bool = False


class Traffic:
    """Serves one host until it says `!quit`.  Everything here happens in one thread."""

    def __init__(
        self,
        start: Callable[[Path], Kernel],
        name: str,
        home: Path,
        options: dict[str, Any],
        host: Host,
        poller: Any,
    ) -> None:
        self._start_kernel, self._name, self._home, self._options = start, name, home, options
        self._host, self._poller = host, poller
        self._from_host = bytearray()
        self._quitting = False
        self._generation = 0
        self._captures = Captures(int(options["cap"]), poller)
        self._watch(host.input)
        self._talk: Talk | None = self._start()

    def serve(self) -> None:
        while not self._quitting and (talk := self._talk) is not None:
            soon = talk.hello is not None and not talk.heard
            ready = [what for what, _ in self._poller.poll(_SETTLE if soon else _TICK)]
            for fd in [fd for fd in ready if fd in self._captures.watched]:
                self._captures.read(fd)
            if talk.side.fileno() in ready:
                self._from_kernel(talk)
            if talk.kernel.iopub in ready:
                self._published(talk)
            if talk.kernel.shell in ready:
                self._answered(talk)
            if self._host.input in ready:
                self._commanded(talk)
            if not self._quitting and (talk.side.closed or (not ready and talk.kernel.ended())):
                self._replace(talk)
            elif not ready:
                self._settle(talk)

    def end(self) -> None:
        """Kill the kernel and close everything but the host's pipes."""
        if self._talk is not None:
            self._stop(self._talk)

    # -- the kernel

    def _start(self) -> Talk:
        self._generation += 1
        folder = self._home / f"kernel-{secrets.token_hex(4)}"
        kernel = self._start_kernel(folder)
        self._host.kernel_pid = kernel.pid
        path, key = folder / "frames", secrets.token_hex(32)
        side = Side(path, key)
        for what in (kernel.shell, kernel.iopub, side.fileno()):
            self._watch(what)
        code = BOOTSTRAP.format(
            folder=str(Path(__file__).parents[1]),
            path=str(path),
            key=key,
            generation=self._generation,
            options=self._options,
        )
        return Talk(kernel, side, kernel.execute(f"exec({code!r}, {{}})"))  # in a namespace of its own

    def _replace(self, talk: Talk) -> None:
        """The kernel ended, or cannot be reached any more: clear up after it, tell the host, start another."""
        status = self._stop(talk)
        if talk.hello is None:
            raise RuntimeError(f"the kernel {self._name!r} ended while it was starting")
        self._host.ready.clear()
        killed_by = -status if status is not None and status < 0 else None
        code = None if killed_by is not None else status
        self._host.tell({"t": "died", "g": self._generation, "signal": killed_by, "code": code})
        self._talk = self._start()

    def _stop(self, talk: Talk) -> int | None:
        self._talk = None
        if not talk.kernel.ended():
            talk.kernel.kill()
        status = talk.kernel.exit_status()
        for what in (talk.kernel.shell, talk.kernel.iopub, talk.side.fileno()):
            self._poller.unregister(what)
        for job in list(self._captures.jobs):
            self._end_output(job)
        for fd in list(self._captures.watched):
            self._captures.forget(fd)
        talk.side.close()
        self._host.kernel_pid = None
        talk.kernel.release()
        return status

    def _settle(self, talk: Talk) -> None:
        """Nothing came for a moment."""
        if talk.hello is not None and not talk.heard:
            talk.kernel.ask_for_info()  # it began to publish before it knew that we listen

    # -- from the host

    def _commanded(self, talk: Talk) -> None:
        data = os.read(self._host.input, 1 << 16)
        for line in whole_lines(self._from_host, data) if data else [b"!quit\n"]:
            match line.strip():
                case b"!int" | b"!kill" if not talk.ready:
                    pass  # meant for the kernel before this one, which ended meanwhile
                case b"!int":
                    talk.kernel.interrupt()
                case b"!kill":
                    talk.kernel.kill()
                case b"!quit":
                    self._quitting = True
                case _ if talk.ready:
                    self._forward(talk, line)
                case _:
                    talk.waiting.append(line)

    def _forward(self, talk: Talk, line: bytes) -> None:
        frame: dict[str, Any] = json.loads(line)
        if frame.get("g") != self._generation:
            return  # meant for the kernel before this one
        pipe = -1
        if frame["t"] != "reply":
            number = int(frame["id"])
            talk.requests[talk.kernel.execute(SERVE.format(number=number))] = number
            if frame["t"] in CAPTURED:
                pipe = self._captures.begin(number)
        talk.side.send(line, pipe)

    # -- from the kernel

    def _from_kernel(self, talk: Talk) -> None:
        before = talk.side.fileno()
        lines = talk.side.receive()
        if talk.side.fileno() != before:  # from now on the connection, no longer the listener
            self._poller.unregister(before)
            self._watch(talk.side.fileno())
        for line in lines:
            try:
                frame: Any = json.loads(line)
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if isinstance(frame, dict):
                self._take(talk, cast("dict[str, Any]", frame))

    def _take(self, talk: Talk, frame: dict[str, Any]) -> None:
        match frame.get("t"):
            case "hello":
                talk.hello = frame
                self._begin(talk)
            case "done":
                self._end_output(frame.get("id"))
                self._host.tell(frame)
            case _:
                self._host.tell(frame)

    def _begin(self, talk: Talk) -> None:
        """Once the kernel has connected and its publications are heard, it is ready."""
        if talk.hello is None or not talk.heard or talk.ready:
            return
        talk.ready = True
        self._host.ready.set()
        self._host.tell(talk.hello)
        waiting, talk.waiting = talk.waiting, []
        for line in waiting:
            self._forward(talk, line)

    def _published(self, talk: Talk) -> None:
        message = talk.kernel.receive(talk.kernel.iopub)
        if message is None:
            return
        talk.heard = True
        self._begin(talk)
        request = str(message["parent_header"].get("msg_id"))
        if request not in talk.requests:
            return
        if message["header"]["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            del talk.requests[request]

    def _answered(self, talk: Talk) -> None:
        """A request that failed did not get to its job, or past it: the host must not wait for the job's end."""
        message = talk.kernel.receive(talk.kernel.shell)
        if message is None or message["header"]["msg_type"] != "execute_reply":
            return
        content, request = message["content"], message["parent_header"].get("msg_id")
        if content.get("status") == "ok":
            return
        what = f"{content.get('ename', 'Error')}: {content.get('evalue', '')}"
        if request == talk.first:
            raise RuntimeError(f"the kernel {self._name!r} cannot run the session's code: {what}")
        number = talk.requests.get(str(request))
        while not talk.side.closed and talk.side.readable():  # the job's end came before the reply, if it did come
            self._from_kernel(talk)
        if number is None or number not in talk.requests.values() or talk.side.closed:
            return
        error = {"message": what, "text": [what + "\n", 0, ""]}
        self._take(talk, {"t": "done", "g": self._generation, "id": number, "error": error, "interrupts": 1})

    def _end_output(self, job: Any) -> None:
        if frame := self._captures.end(job):
            self._host.tell(frame)

    def _watch(self, what: Any) -> None:
        import zmq

        self._poller.register(what, zmq.POLLIN)
