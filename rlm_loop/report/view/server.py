"""The local server of the pages: it only reads, answers only on this machine, and only to its own name."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlm_loop.report.run.page import judged, page_of
from rlm_loop.report.templates import macros, sealed
from rlm_loop.report.view.folder import ListedEpisode, RunFolder
from rlm_loop.traces.trace import TraceError

_HTML, _JSON, _TEXT = "text/html", "application/json", "text/plain"
_SCRIPT = "view/watch.js"
_TABLE = "view/table.html", "view/view.css", _SCRIPT, "view/table.js"
#: What every answer says: nothing of it is for pages of others, and the browser asks whether its copy is still good.
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_LOOPBACK = "127.0.0.1"


@contextlib.contextmanager
def viewing(folder: str | Path, *, port: int = 0) -> Generator[str]:
    """Serve the pages over a folder (or one trace file) as long as the block runs; the value is the address.

    The server listens on the loopback address alone, refuses requests under another host's name (a page of others
    could reach it through a name of theirs), knows only GET, and writes nothing.  `port` 0 takes a free one.
    Raises `OSError` where the port is taken.
    """
    server = _Server((_LOOPBACK, port), _handler(RunFolder(Path(folder))))
    thread = threading.Thread(target=server.serve_forever, name="view", daemon=True)
    thread.start()
    try:
        yield f"http://{_LOOPBACK}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def episode_page(folder: RunFolder, episode: ListedEpisode, tag: str) -> str:
    """The page of an episode.  One whose trace cannot be read has its row, and says what is missing."""
    pieces, path = macros("view/episode.html"), episode.path or episode.name
    foot = "This page comes from this machine and asks no other."
    values: dict[str, Any] = {"connect": True, "nav": pieces.nav(tag), "foot": foot}
    try:
        with folder.trace(episode) as trace:
            return page_of(trace, path, _SCRIPT, run=episode.run or None, row=episode.row, **values)
    except TraceError as error:
        row = json.dumps(episode.row, indent=1, ensure_ascii=False, default=str) if episode.row else ""
        runs = pieces.row_alone(episode.name, judged(episode.row), str(error), row)
        return sealed("run/page.html", "run/page.js", _SCRIPT, title=episode.name, runs=runs, name=path, **values)


class _Server(ThreadingHTTPServer):
    request_queue_size = 32


def _handler(folder: RunFolder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "rlm-loop", ""
        timeout = 30

        def do_GET(self) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                if not self._ours():
                    self._send(403, _TEXT, lambda: f"This server answers only as {_LOOPBACK} and localhost.\n")
                    return
                contents, name = folder.contents(), folder.name
                match urlsplit(self.path).path.split("/")[1:]:
                    case [""]:
                        self._send(200, _HTML, lambda: sealed(*_TABLE, connect=True, title=name, name=name))
                    case ["rows.json"]:
                        self._send(200, _JSON, lambda: contents.json, contents.tag)
                    case ["e", page] if episode := contents.episodes.get(page.removesuffix(".html")):
                        tag = folder.tag(episode)
                        self._send(200, _HTML, lambda: episode_page(folder, episode, tag), tag)
                    case _:
                        self._send(404, _TEXT, lambda: "There is no such page; the table of all episodes is at /\n")

        def _send(self, status: int, kind: str, make: Callable[[], str], tag: str = "") -> None:
            """Send a page; its text is made only where the browser does not have that of the same `tag`."""
            same = bool(tag) and self.headers.get("If-None-Match") == f'"{tag}"'
            body = b"" if same else make().encode("utf-8", "replace")
            self.send_response(304 if same else status)
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            if tag:
                self.send_header("ETag", f'"{tag}"')
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _ours(self) -> bool:
            """Return whether the request names this server, and not a name of somebody else's that leads here."""
            name, _, port = (self.headers.get("Host") or "").rpartition(":")
            return name in (_LOOPBACK, "localhost") and port == str(self.connection.getsockname()[1])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
