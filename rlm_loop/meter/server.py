"""The HTTP side: the standard library's threaded server with kept-alive connections.

An ASGI server was weighed: with a thread per connection this one answers a small request in well under a millisecond
(`benchmarks/meter.py`), needs no extra package, and models block anyhow.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Generator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.meter import chat, gemini, messages, responses
from rlm_loop.meter.body import PATIENCE, body_of
from rlm_loop.meter.exchange import MeteredCall
from rlm_loop.meter.failures import ErrorReply, failure
from rlm_loop.meter.meter import Meter
from rlm_loop.meter.request import Refused
from rlm_loop.meter.session import MeterSession
from rlm_loop.traces.logs import exception
from rlm_loop.traces.trace import TraceError

_log = logging.getLogger(__name__)

_PATH = re.compile(r"(?:/s/(?P<session>[^/]*))?(?:/v1)*(?P<rest>/.*)")
#: Hosts of pages that may call: not those of strangers, opened in a browser on this machine.
_HERE = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SERVED = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # connections that come at once wait, and are not refused

    def __init__(self, address: tuple[str, int], meter: Meter) -> None:
        self.meter = meter
        self.open: set[socket.socket] = set()
        self.numbers = itertools.count(1)
        self.started = int(time.time())
        super().__init__(address, _Handler)

    def hang_up(self) -> None:
        """End the connections that clients keep open."""
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is the client's affair; anything else is a fault of ours."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            exception(_log, "a request to the meter failed", error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE  # also of a connection that is kept open and not used
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        super().finish()

    def parse_request(self) -> bool:
        self.arrived = time.perf_counter()  # the request line is here
        if not super().parse_request():
            return False
        if self.request_version == "HTTP/0.9":  # which has no headers to answer with
            self.send_error(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
            return False
        return True

    def do_POST(self) -> None:
        try:
            raw = body_of(self.headers, self.rfile)
        except Refused as error:
            self.close_connection = True  # what is left of the body cannot be told from a next request
            self._fail(failure(error))
            return
        try:
            session = self._session()
            api, more = _api(self._rest())
            if api is None:
                raise self._nowhere()
        except (Refused, TraceError) as error:
            self._fail(failure(error))
            return
        call = session.arrive(api.__name__.rpartition(".")[2], self.arrived)
        try:
            body = _json(raw)
            request = api.read({**body, **more} if more and isinstance(body, dict) else body)
            reply = session.complete(request, call)
            about = (f"{self.server.started:x}-{next(self.server.numbers)}", int(time.time()))
            if request.stream:
                kind, body = "text/event-stream; charset=utf-8", "".join(api.stream(reply, request, *about))
            else:
                kind, body = "application/json", json.dumps(api.write(reply, request, *about))
        except (Exception, BudgetSpent, Cancelled) as error:
            told = failure(error)
            session.leave(call, status=told.status, error=told.message)
            self._deliver(session, call, lambda: self._fail(told))
            return
        session.leave(call)
        self._deliver(session, call, lambda: self._send(200, body.encode(), kind))

    def do_GET(self) -> None:
        try:
            self._session_name()
            rest = self._rest()
            if rest != "/models" and not rest.startswith("/models/"):
                raise self._nowhere()
        except Refused as error:
            self._fail(failure(error))
            return
        name = rest.removeprefix("/models/") if rest != "/models" else self.server.meter.model.name
        entry = {"id": name, "object": "model", "created": self.server.started, "owned_by": "rlm-loop"}
        self._send(200, json.dumps(entry if rest != "/models" else {"object": "list", "data": [entry]}).encode())

    def _rest(self) -> str:
        match = _PATH.fullmatch(self.path.partition("?")[0])
        return match["rest"].rstrip("/") if match else ""

    def _nowhere(self) -> Refused:
        served = ", ".join(f"/v1{path}" for path in (*_SERVED, "/models"))
        return Refused(f"nothing is served at {self.path}; there are {served}", status=404, code="unknown_url")

    def _session(self) -> MeterSession:
        return self.server.meter.session(self._session_name())

    def _session_name(self) -> str:
        """By path, else by header, else by a hash of the key: the key itself is kept nowhere."""
        origin = self.headers.get("Origin")
        if origin is not None and (urlsplit(origin).hostname or "") not in _HERE:
            raise Refused(f"a page of {origin[:80]} may not use this address; call it from a program", status=403)
        match = _PATH.fullmatch(self.path.partition("?")[0])
        name = (match["session"] if match else None) or self.headers.get("X-RLM-Session")
        if name is None:
            key = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
            return f"key-{hashlib.sha256(key.encode()).hexdigest()[:10]}" if key else "default"
        if not _NAME.fullmatch(name):
            raise Refused(f"{name[:80]!r} is no name of a session; use letters, digits, - . _ (64 at most)")
        return name

    def _fail(self, told: ErrorReply) -> None:
        body = (_api(self._rest())[0] or chat).error(told)
        more = {"x-should-retry": "true" if told.again else "false"}
        if told.after is not None:
            more["Retry-After"] = f"{told.after:g}"
        self._send(told.status, json.dumps(body).encode(), **more)

    def _deliver(self, session: MeterSession, call: MeteredCall, send: Any) -> None:
        try:
            send()
            session.settle(call)
        except OSError:  # the client has hung up
            self.close_connection = True
            session.settle(call, delivered=False)

    def _send(self, status: int, body: bytes, kind: str = "application/json", **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self._headers_buffer.append(b"\r\n")  # one write for all, so that no packet waits for another
        head = b"".join(self._headers_buffer)
        self._headers_buffer = []
        self.wfile.write(head + body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed for a request: the meter's own record says more."""


def _api(rest: str) -> tuple[Any, dict[str, Any]]:
    """The API of a path (`None` for no API's), and what the path tells of the request."""
    found = gemini.PATH.fullmatch(rest)
    if found is not None:
        return gemini, {"model": found["model"], "stream": found["stream"].startswith("stream")}
    return _SERVED.get(rest), {}


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the request body is no JSON ({error}); send one JSON object") from error


@contextlib.contextmanager
def serve(meter: Meter, host: str, port: int) -> Generator[str]:
    """Serve in a thread for the time of the block; yields the address."""
    server = _Server((host, port), meter)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join()
