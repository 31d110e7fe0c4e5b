"""The HTTP side: the standard library's threaded server with kept-alive connections.

An ASGI server was weighed: with a thread per connection this one answers a small request in well under a millisecond
(`benchmarks/meter.py`), needs no extra package, and models block anyhow.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.meter import chat, gemini, messages, responses
from rlm_loop.meter.body import PATIENCE, body_of
from rlm_loop.meter.figures import MeteredCall
from rlm_loop.meter.forward import ForwardedExchange, ForwardedProvider, of_the_content
from rlm_loop.meter.meter import Meter
from rlm_loop.meter.request import Refused, failure
from rlm_loop.meter.session import MeterSession
from rlm_loop.models.http import Answer, Lost
from rlm_loop.traces.logs import exception
from rlm_loop.traces.trace import TraceError

_log = logging.getLogger(__name__)

_PATH = re.compile(r"(?:/s/(?P<session>[^/]*))?(?:/v1)*(?P<rest>/.*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: A provider may have more in front: `/openai/v1/chat/completions` (Groq), `/openai/deployments/NAME/...` (Azure),
#: `/anthropic/v1/messages`; `/threads/ID/messages` of OpenAI's assistants is something else.
_IN_FRONT = re.compile(r"/[^:]*(?=/chat/completions|/responses)|/[^:]*/v1(?=/messages)")
_READ: dict[str, Any] = {"/chat/completions": chat, "/responses": responses, "/messages": messages}
_GEMINI = re.compile(r"(?:/[^:]*)?/models/(?P<model>[^/:]+):(?P<what>generateContent|streamGenerateContent)")
_KEYS = ("Authorization", "x-api-key", "x-goog-api-key", "api-key")


def _route(rest: str) -> tuple[Any, str, bool]:
    """The API that a path asks for, if it is a known one, of which model and whether as a stream, where it says so."""
    if match := _GEMINI.fullmatch(rest):
        return gemini, match["model"], match["what"] == "streamGenerateContent"
    return _READ.get(_IN_FRONT.sub("", rest, count=1)), "", False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # connections that come at once wait, and are not refused

    def __init__(self, address: tuple[str, int], meter: Meter) -> None:
        self.meter = meter
        self.open: set[socket.socket] = set()
        self.loopback = _is_here(address[0])
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
    wbufsize = -1  # head and body go out together, so that no packet waits for another
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
        self.place = _PATH.fullmatch(self.path.partition("?")[0])
        self.rest = self.place["rest"].rstrip("/") if self.place else ""
        self.api, self.model, self.streams = _route(self.rest)
        return True

    def _serve(self) -> None:
        """Answer a request: pass it on where there is a provider, else ask the model."""
        try:
            raw, name, meter, rest = self._body(), self._session_name(), self.server.meter, self.rest
            if meter.provider is not None:
                self._relay(meter.provider, meter.session(name), raw)
            elif self.command not in ("GET", "POST"):
                raise Refused(f"{self.command} is not served here; use POST or GET", status=501)
            elif self.command == "POST" and self.api is chat:
                self._reply(meter.session(name), raw or b"")
            elif self.command == "GET" and rest == "/models":
                entry = {"id": meter.model.name, "object": "model", "created": 0, "owned_by": "rlm-loop"}
                self._send(200, json.dumps({"object": "list", "data": [entry]}).encode())
            else:
                message = f"nothing is served at {self.path}; there are /v1/chat/completions, /v1/models"
                raise Refused(message, status=404, kind="not_found_error", code="unknown_url")
        except (Refused, TraceError) as error:
            self._fail(failure(error))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve

    def _body(self) -> bytes | None:
        """Return the body, `None` for a request that has none.  Raises `Refused`."""
        if self.command != "POST" and "Content-Length" not in self.headers and "Transfer-Encoding" not in self.headers:
            return None
        try:
            return body_of(self.headers, self.rfile)
        except Refused:
            self.close_connection = True  # what is left of the body cannot be told from a next request
            raise

    def _reply(self, session: MeterSession, raw: bytes) -> None:
        """Answer with the reply of the model."""
        call = session.arrive("chat", self.arrived)
        try:
            request = chat.read(_json(raw))
            reply = session.complete(request, call)
            if request.stream:
                kind, body = "text/event-stream; charset=utf-8", "".join(chat.stream(reply, request))
            else:
                kind, body = "application/json", json.dumps(chat.write(reply, request))
        except (Exception, BudgetSpent, Cancelled) as error:
            self._refuse(session, call, failure(error))
            return
        self._deliver(session, call, partial(self._send, 200, body.encode(), kind))

    def _relay(self, provider: ForwardedProvider, session: MeterSession, raw: bytes | None) -> None:
        """Pass a request on and its answer back, byte by byte; what is of a known API is read afterwards."""
        segments = re.split(r"[/\\]", unquote(self.path.partition("?")[0]))
        if self.place is None or not self.path.isascii() or any(s.partition(";")[0] == ".." for s in segments):
            raise Refused("a request names a plain path; the address behind the meter cannot be chosen")
        path = self.path if self.place["session"] is None else self.path.removeprefix(f"/s/{self.place['session']}")
        exchange = None
        if self.command == "POST" and self.api is not None:
            call = session.arrive(str(self.api.__name__.rpartition(".")[2]), self.arrived)
            try:
                self.server.meter.check(session, call)
            except BudgetSpent as spent:
                self._refuse(session, call, failure(spent))
                return
            exchange = ForwardedExchange(session, call, self.api, raw or b"", self.model, self.streams)
            self.server.meter.passing(exchange)
        begun, error, delivered = False, None, True
        try:
            with provider.ask(self.command, path, self.headers, raw) as answer:
                begun = True
                if exchange is not None:
                    exchange.status, exchange.headers = answer.status, {k.lower(): v for k, v in answer.headers.items()}
                self._pass_back(answer, exchange)
        except Lost as lost:
            error, delivered = f"{provider.address}: {lost}", False
            self.close_connection = True
            if not begun:
                with contextlib.suppress(OSError):
                    self._fail(Refused(f"{error}: is it running?", status=502, kind="server_error", again=True))
        except OSError:  # the client has hung up
            self.close_connection, delivered = True, False
        finally:
            if exchange is not None:
                self.server.meter.passed(exchange, error=error, delivered=delivered)

    def _pass_back(self, answer: Answer, exchange: ForwardedExchange | None) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in of_the_content(answer.headers):
            self.send_header(name, value)
        bare = self.command == "HEAD" or answer.status in (204, 304) or answer.status < 200
        chunked = not bare and "content-length" not in answer.headers
        if chunked and self.request_version == "HTTP/1.0":
            chunked, self.close_connection = False, True
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        for piece in answer.pieces():
            if exchange is not None:
                exchange.add(piece)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _session_name(self) -> str:
        """Return the name by path, else by a hash of the key: the key itself is kept nowhere."""
        self._check_client()
        name = self.place["session"] if self.place else None
        if name is None:
            named = (self.headers.get(name, "").removeprefix("Bearer ") for name in _KEYS)
            key = next(filter(None, named), "") or parse_qs(urlsplit(self.path).query).get("key", [""])[0]
            return f"key-{hashlib.sha256(key.encode()).hexdigest()[:10]}" if key else "default"
        if not _NAME.fullmatch(name):
            raise Refused(f"{name[:80]!r} is no name of a session; use letters, digits, - . _ (64 at most)")
        return name

    def _check_client(self) -> None:
        """Refuse pages of strangers that a browser on this machine shows, by every header that tells of them."""
        for host in self.headers.get_all("Host", []) if self.server.loopback else ():
            if not _is_here(_host_of(f"//{host}").rstrip(".")):
                raise Refused(f"this address is not called {host[:80]!r}; use 127.0.0.1 or localhost", status=403)
        origins = self.headers.get_all("Origin", [])
        if not origins and self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            origins = ["another address"]  # a picture or a link of a page, which has no Origin
        for origin in origins:
            if not _is_here(_host_of(origin)):
                raise Refused(f"a page of {origin[:80]} may not use this address; call it from a program", status=403)

    def _fail(self, told: Refused) -> None:
        body = (self.api or chat).error(told)
        more = {"x-should-retry": "true" if told.again else "false"}
        if told.after is not None:
            more["Retry-After"] = f"{told.after:g}"
        self._send(told.status, json.dumps(body).encode(), **more)

    def _refuse(self, session: MeterSession, call: MeteredCall, told: Refused) -> None:
        call.status, call.error = told.status, told.message
        self._deliver(session, call, partial(self._fail, told))

    def _deliver(self, session: MeterSession, call: MeteredCall, send: Callable[[], None]) -> None:
        call.ended = time.perf_counter()
        try:
            send()
        except OSError:  # the client has hung up
            self.close_connection, call.delivered = True, False
        session.settle(call)

    def _send(self, status: int, body: bytes, kind: str = "application/json", **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)  # RFC 9110, 9.3.2
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed for a request: the meter's own record says more."""


def _is_here(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _host_of(address: str) -> str:
    """Return the host in an address; nothing for what is no address."""
    with contextlib.suppress(ValueError):
        return urlsplit(address).hostname or ""
    return ""


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
