"""Headless Chromium, driven over a pipe by its own DevTools protocol: no server, no port, no further package."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = "no Chromium is installed: apt-get install chromium"
#: Chromium reads commands from descriptor 3 and writes to 4; this puts our pipes there.
_PLACE = (
    "import os,sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
OPTIONS = (
    "--headless --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars --disable-dev-shm-usage"
    " --remote-debugging-pipe"
)
_PATIENCE = 300.0
#: The browser has laid out and drawn once more, after what waits a moment for further keys.
SETTLED = "new Promise(done => setTimeout(() => requestAnimationFrame(() => done()), 300))"


def chromium() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One tab of a browser of its own, in a profile folder of its own.  `events` are all that it told so far."""

    def __init__(self, profile: Path) -> None:
        path = chromium()
        if path is None:
            raise FileNotFoundError(MISSING)
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        own = [f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank"]
        theirs = theirs_in, theirs_out
        command = [sys.executable, "-c", _PLACE, *map(str, theirs), path, *OPTIONS.split(), *own]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self._process = subprocess.Popen(command, pass_fds=theirs, start_new_session=True, **quiet)
        for end in theirs:
            os.close(end)
        self.events: list[dict[str, Any]] = []
        self._number, self._buffer, self._session = 0, b"", ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the group that this object started
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    # -- what a reader does

    def open(self, page: Path | str, *, fragment: str = "", width: int = 1200, dark: bool = False) -> None:
        """Load a file or an address and wait until it has loaded."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        theme = "dark" if dark else "light"
        self._ask("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": theme}])
        address = page if isinstance(page, str) else page.resolve().as_uri()
        for url in ("about:blank", address + fragment):  # else only the fragment might change
            self.events.clear()
            self._ask("Page.navigate", url=url)
            self._until(lambda: bool(self._told("Page.loadEventFired")))

    def value(self, expression: str) -> Any:
        """What a JavaScript expression comes to on the page; a promise is waited for."""
        told = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise AssertionError(told["exceptionDetails"])
        return told["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until a JavaScript condition holds, on this page or on one that takes its place."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):  # the page is left just now
                if self.value(condition):
                    return
            time.sleep(0.05)
        raise AssertionError(condition)

    def press(self, key: str) -> None:
        """Press the key of a character."""
        self._ask("Input.dispatchKeyEvent", type="keyDown", text=key, key=key)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        self._ask("Input.insertText", text=text)

    def scripts(self, on: bool) -> None:
        """Whether the pages that are opened from now on may run scripts."""
        self._ask("Emulation.setScriptExecutionDisabled", value=not on)

    def complaints(self) -> list[str]:
        """Errors and warnings that the page caused, refused requests and scripts among them."""
        logged = [e["entry"]["text"] for e in self._told("Log.entryAdded")]
        return logged + [str(e) for e in self._told("Runtime.exceptionThrown")]

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        return [e["request"]["url"] for e in self._told("Network.requestWillBeSent")]

    def _told(self, method: str) -> list[dict[str, Any]]:
        return [e["params"] for e in self.events if e.get("method") == method]

    # -- the protocol: JSON objects, each ended by a NUL

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps({"id": number, "method": method, "params": params, **session}).encode() + b"\0")
        self._until(lambda: any(e.get("id") == number for e in self.events))
        told = next(e for e in self.events if e.get("id") == number)
        self.events.remove(told)
        if "error" in told:
            raise RuntimeError(f"{method}: {told['error']}")
        return told["result"]

    def _until(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not done():
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise ConnectionError("the browser has ended")
            *whole, self._buffer = (self._buffer + chunk).split(b"\0")
            self.events += [json.loads(part) for part in whole]


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are above those that Chromium uses."""
    ends = os.pipe()
    above = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return above[0], above[1]
