"""llama.cpp in this process: one loaded model with its HTTP interface on the loopback.

Requests go over HTTP rather than through `Server.handle_chat_completions`, because that one cannot be
interrupted: Ctrl-C would wait for the last token.  A closed connection makes llama.cpp stop generating, and
HTTP costs about a millisecond a call.  The address is protected by a random key, so that code which a model
writes cannot reach the model behind the meter's back.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.models.base import ModelError, ModelNotFound, tell
from rlm_loop.models.http import Http
from rlm_loop.traces.received import parse
from rlm_loop.traces.redact import remember

#: Main memory in which llama.cpp may keep the states of earlier prompts (its own default is 8 GB).
PROMPT_CACHE_MIB = 1024


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
    return f"{dict(library.BUILD_INFO).get('compiler')}: {library.get_system_info()}"


class LlamaServer(Http):
    """A loaded model with a window of so many tokens per slot.  With one slot, requests of threads queue up."""

    def __init__(self, path: Path, window: int, threads: int, slots: int) -> None:
        if not path.is_file():
            raise ModelNotFound(f"there is no model file {path}: see `rlm-loop models list`", str(path))
        try:
            xllamacpp = _library()
        except ImportError as error:
            raise ModelError(f"local models need xllamacpp: {install_line('local')}", path.name) from error
        remember(key := secrets.token_hex(16))
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = window * slots  # llama.cpp divides it among the slots
        params.n_parallel = slots
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = threads
            cpu.poll = 0
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.verbosity = -1
        params.warmup = False
        params.ui = False
        params.api_keys = [key]
        # Ctrl-C in the middle of llama.cpp's start can leave it waiting for ever.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            said = f"could not load {path} ({path.stat().st_size:,} bytes) with a window of {window} tokens"
            hint = "try a smaller context_size, or fetch the file again (`rlm-loop models pull NAME`)"
            raise ModelError(f"llama.cpp {said}: {hint}", path.name) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.address = self._server.listening_address.rstrip("/")
        super().__init__(self.address, headers={"Authorization": f"Bearer {key}"}, timeout=None)
        props = parse(self.send("/props").data)
        self.takes_tools = bool(props.get("chat_template_caps", {}).get("supports_tools", True))


_loaded: dict[tuple[Any, ...], LlamaServer] = {}
_lock = threading.Lock()


def shared(path: Path, window: int, threads: int, slots: int) -> LlamaServer:
    """Return the loaded copy for these settings, loaded now if there is none in this process."""
    key = (os.getpid(), path, window, threads, slots)  # a forked child has the memory but not the threads
    with _lock:
        if key not in _loaded:
            tell("loading", path.name)
            _loaded[key] = LlamaServer(path, window, threads, slots)
        return _loaded[key]


@atexit.register
def unload() -> None:
    """Free every model that is loaded in this process; the next use loads again."""
    with _lock:
        for key in [k for k in _loaded if k[0] == os.getpid()]:
            del _loaded[key]
