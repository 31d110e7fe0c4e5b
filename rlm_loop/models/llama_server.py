"""llama.cpp in this process: one loaded model with its HTTP interface on the loopback.

Requests go over HTTP rather than through `Server.handle_chat_completions`, because that one cannot be
interrupted: Ctrl-C would wait for the last token.  A closed connection makes llama.cpp stop generating, and
HTTP costs about a millisecond a call.  The address is protected by a random key, so that code which a model
writes cannot reach the model behind the meter's back.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import signal
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from rlm_loop.errors import install_line
from rlm_loop.models.base import ModelError, ModelNotFound, RequestRejected, no_text
from rlm_loop.models.http import Http, Lost, TooLate
from rlm_loop.models.listening import listener, tell
from rlm_loop.models.streams import CHAT, STREAMED, body_of, hearing

#: Main memory in which llama.cpp may keep the states of earlier prompts (its own default is 8 GB).
PROMPT_CACHE_MIB = 1024
FETCH_AGAIN = "fetch it again (`rlm-loop models pull NAME` for a known model)"


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a loaded copy; models that agree in them share it.  `window` is in tokens, per slot."""

    path: Path
    window: int
    threads: int
    slots: int


@contextlib.contextmanager
def _without_interrupts() -> Generator[None]:
    """Hold back Ctrl-C: in the middle of llama.cpp's start it can leave it waiting for ever."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _library() -> Any:
    # Spinning OpenMP threads starve each other beside any busy process; read when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return import_module("xllamacpp")  # compiled: it has no types to check against


def llama_build() -> str | None:
    """Return the compiler of llama.cpp here and the instructions it uses: texts depend on both; `None` without it."""
    try:
        library = _library()
    except ImportError:
        return None
    flags = [flag.split(" = ") for flag in str(library.get_system_info()).replace("CPU :", "").split("|")]
    used = [flag[0].strip() for flag in flags if flag[-1].strip() == "1"]
    return f"{dict(library.BUILD_INFO).get('compiler', 'unknown compiler')}: {' '.join(used)}"


class LlamaServer:
    """A loaded model.  Safe to use from several threads; with one slot their requests queue up."""

    def __init__(self, settings: ServerSettings) -> None:
        path = settings.path
        if not path.is_file():
            raise ModelNotFound(f"there is no model file {path}: see `rlm-loop models list`", str(path))
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelError(f"{path} cannot be used, it is not a GGUF file: {FETCH_AGAIN}", path.name)
        try:
            xllamacpp = _library()
        except ImportError as error:
            raise ModelError(f"local models need xllamacpp: {install_line('local')}", path.name) from error
        key = secrets.token_hex(16)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = settings.window * settings.slots  # llama.cpp divides it among the slots
        params.n_parallel = settings.slots
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = settings.threads
            cpu.poll = 0
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.verbosity = -1
        params.warmup = False
        params.ui = False
        params.api_keys = [key]
        try:
            with _without_interrupts():
                self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp could not load {path} ({path.stat().st_size:,} bytes) with a window of {settings.window} "
                f"tokens: try a smaller context_size; if the file is cut off or damaged, {FETCH_AGAIN}",
                path.name,
            ) from error
        self.path = path
        self.model = path.name
        # no proxies: one from the environment must not come between a process and itself
        address, headers = self._server.listening_address.rstrip("/"), {"Authorization": f"Bearer {key}"}
        self._http = Http(address, headers=headers, timeout=None, proxies=False)
        props = cast("dict[str, Any]", self._http.get("/props").json())
        self.takes_tools = bool(props.get("chat_template_caps", {}).get("supports_tools", True))
        self._trailer: str | None = None

    def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return one completion, as the body of a chat-completions response; in events where somebody listens."""
        return self._post("/v1/chat/completions", {**body, **(STREAMED if listener.get() is not None else {})})

    def render(self, body: Mapping[str, Any]) -> str:
        """Return the text that the chat template makes of a request."""
        return str(self._post("/apply-template", body).get("prompt", ""))

    def tokenize(self, text: str) -> list[bytes]:
        """Return the tokens of a rendered text, as the bytes that each stands for."""
        request = {"content": text, "add_special": True, "parse_special": True, "with_pieces": True}
        answer = self._post("/tokenize", request)
        try:
            pieces = [token["piece"] for token in answer["tokens"]]
        except (KeyError, TypeError) as error:
            raise ModelError(f"llama.cpp sent no tokens but {str(answer)[:120]!r}", self.model) from error
        return [piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces]

    @property
    def trailer(self) -> str:
        """The text that the template writes after a user's."""
        if self._trailer is None:
            probe = {"messages": [{"role": "user", "content": "ZprobeZ"}], "add_generation_prompt": False}
            self._trailer = self.render(probe).partition("ZprobeZ")[2]
        return self._trailer

    def close(self) -> None:
        """Free the memory.  The object cannot be used after it."""
        self._server = None

    def _post(self, path: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        try:
            response = self._http.post(path, sent, hearing(CHAT) if sent.get("stream") else None)
            answer = body_of(response, CHAT)
        except UnicodeEncodeError as error:
            raise no_text(self.model) from error
        except (Lost, TooLate) as error:
            raise ModelError(f"llama.cpp stopped answering ({type(error).__name__})", self.model) from error
        if not isinstance(answer, dict):
            raise ModelError(f"llama.cpp sent no object but {response.text[:120]!r}", self.model)
        body = cast("dict[str, Any]", answer)
        if response.status >= 400 or "error" in body:
            raise self._refusal(body.get("error"))
        return body

    def _refusal(self, error: Any) -> ModelError:
        details = cast("dict[str, Any]", error if isinstance(error, dict) else {"message": str(error)})
        message = " ".join(str(details.get("message", "no reason given")).split())[:300]
        if details.get("type") == "exceed_context_size_error":
            return RequestRejected(
                f"the prompt has {details.get('n_prompt_tokens')} tokens but the window is {details.get('n_ctx')}: "
                "raise context_size, set history=, or let the model look at less at once",
                self.model,
            )
        if "2 or more assistant messages" in message:
            message = "two assistant messages in a row: join them, or put a user or tool message between"
        elif "tool call arguments as JSON" in message:
            message = "the arguments of an earlier tool call are no JSON: send that turn as plain text"
        elif not isinstance(code := details.get("code", 500), int) or code >= 500:
            return ModelError(f"llama.cpp failed: {message}", self.model)
        return RequestRejected(f"llama.cpp refused the request: {message}", self.model)


_loaded: dict[tuple[int, ServerSettings], LlamaServer] = {}
_lock = threading.Lock()


def shared(settings: ServerSettings) -> LlamaServer:
    """Return the loaded copy for these settings, loaded now if there is none in this process."""
    key = (os.getpid(), settings)  # a forked child has the memory but not the threads: it loads its own
    with _lock:
        if key not in _loaded:
            tell("loading", settings.path.name)
            _loaded[key] = LlamaServer(settings)
        return _loaded[key]


def unload() -> None:
    """Free every model that is loaded in this process; the next use loads again."""
    with _lock:
        for key in [k for k in _loaded if k[0] == os.getpid()]:
            _loaded.pop(key).close()


atexit.register(unload)
