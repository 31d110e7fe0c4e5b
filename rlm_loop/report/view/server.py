"""The local server of the pages: it only reads, answers only on this machine, and only to its own name."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlm_loop.report.view.episode import episode_page
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import FolderContents, RunIndex
from rlm_loop.report.view.table import table_data, table_page
from rlm_loop.traces.trace import TraceError

_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
#: What every answer says: nothing of it is for pages of others.
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class ServedPage:
    """An answer of the server: its bytes are made only where the browser does not have those of the same `tag`."""

    make: Callable[[], str]
    tag: str = ""
    kind: str = _HTML
    status: int = 200


@dataclass
class Viewer:
    """The pages over a folder, by their addresses."""

    index: RunIndex
    _table: tuple[int, str] = field(default=(0, ""))

    def page(self, address: str) -> ServedPage:
        """The page at an address (path and query); one that says so where there is none."""
        parts = urlsplit(address)
        found = self.index.found()
        match parts.path.strip("/").split("/"):
            case [""]:
                return ServedPage(lambda: self._whole(found), str(found.version))
            case ["rows.json"]:
                return ServedPage(lambda: _json(table_data(found)), str(found.version), _JSON)
            case ["e", name] if (episode := found.by_id.get(name.removesuffix(".html"))) is not None:
                return ServedPage(lambda: episode_page(self.index, found, episode), self._tag(found, episode))
            case _:
                return _said("There is no such page", 404)

    def _tag(self, found: FolderContents, *episodes: ListedEpisode) -> str:
        marks = "-".join(f"{number:x}" for episode in episodes for number in self.index.mark(episode))
        return f"{found.version}-{marks}"

    def _whole(self, found: FolderContents) -> str:
        if self._table[0] != found.version:
            self._table = found.version, table_page(found, self.index.name)
        return self._table[1]


def _said(text: str, status: int) -> ServedPage:
    return ServedPage(lambda: f"{text}; the table of all episodes is at /\n", kind=_TEXT, status=status)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextlib.contextmanager
def viewing(folder: str | Path, *, port: int = 0) -> Generator[str]:
    """Serve the pages over a folder (or one trace file) as long as the block runs; the value is the address.

    The server listens on the loopback address alone, refuses requests under another host's name (a page of others
    could reach it through a name of theirs), knows only GET and HEAD, and writes nothing.  `port` 0 takes a free one.
    Raises `OSError` where the port is taken.
    """
    viewer = Viewer(RunIndex(Path(folder)))
    server = _Server((_LOOPBACK, port), _handler(viewer))
    thread = threading.Thread(target=server.serve_forever, name="view", daemon=True)
    thread.start()
    threading.Thread(target=viewer.index.found, name="first look", daemon=True).start()  # while the browser starts
    try:
        yield f"http://{_LOOPBACK}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32


def _handler(viewer: Viewer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "rlm-loop", ""
        timeout = 30

        def do_GET(self) -> None:
            self._answer(whole=True)

        def do_HEAD(self) -> None:
            self._answer(whole=False)

        def _answer(self, *, whole: bool) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                page = viewer.page(self.path) if self._ours() else _refused()
                tag = f'"{page.tag}"' if page.tag else ""
                if tag and self.headers.get("If-None-Match") == tag:
                    self._head(304, page.kind, tag, 0)
                    return
                body = b""
                if whole:
                    try:
                        body = page.make().encode("utf-8", "replace")
                    except TraceError as error:
                        page, tag = _said(str(error), 404), ""
                        body = page.make().encode("utf-8", "replace")
                self._head(page.status, page.kind, tag, len(body) if whole else None)
                self.wfile.write(body)

        def _head(self, status: int, kind: str, tag: str, length: int | None) -> None:
            self.send_response(status)
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            if tag:
                self.send_header("ETag", tag)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def _ours(self) -> bool:
            """Whether the request names this server, and not a name of somebody else's that leads here."""
            name, _, port = (self.headers.get("Host") or "").rpartition(":")
            return name in (_LOOPBACK, "localhost") and port == str(self.connection.getsockname()[1])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _refused() -> ServedPage:
    return ServedPage(lambda: "This server answers only as 127.0.0.1 and localhost.\n", kind=_TEXT, status=403)
