"""Headless Chromium, driven over a pipe by its own DevTools protocol: no server, no port, no further package."""

from __future__ import annotations

import base64
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
        options = [
            "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
            "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PLACE, str(theirs_in), str(theirs_out), path, *options, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.events: list[dict[str, Any]] = []
        self._number, self._buffer, self._session = 0, b"", ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the group that this object started
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what a reader does

    def open(
        self,
        page: Path | str,
        *,
        fragment: str = "",
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        media: str = "",
    ) -> None:
        """Load a file or an address and wait until it has loaded; `media` is "print" for the style of paper."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        theme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self._ask("Emulation.setEmulatedMedia", media=media, features=features)
        address = page if isinstance(page, str) else page.resolve().as_uri()
        for url in ("about:blank", address + fragment):  # else only the fragment might change
            self.events.clear()
            self._ask("Page.navigate", url=url)
            self._until(lambda: any(e.get("method") == "Page.loadEventFired" for e in self.events))

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
        """Press one key, a character or a name such as `Enter`."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {"Enter": 13, "Escape": 27}.get(key, 0)
        same = {"key": key, "windowsVirtualKeyCode": code}
        self._ask("Input.dispatchKeyEvent", type="keyDown", text=text, **same)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **same)

    def type(self, text: str) -> None:
        self._ask("Input.insertText", text=text)

    def picture(self) -> bytes:
        """What is on the screen, as a PNG."""
        return base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"])

    def scripts(self, on: bool) -> None:
        """Whether the pages that are opened from now on may run scripts."""
        self._ask("Emulation.setScriptExecutionDisabled", value=not on)

    def complaints(self) -> list[str]:
        """Errors and warnings that the page caused, refused requests and scripts among them."""
        found = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return found + [str(e["params"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    # -- the protocol: JSON objects, each ended by a NUL

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        body: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            body["sessionId"] = self._session
        os.write(self._out, json.dumps(body).encode() + b"\0")
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
