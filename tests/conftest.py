"""What holds for every test: no network but this machine's own, and no time limit that a slow machine breaks."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

# A job that a shell runs in the background inherits an ignored Ctrl-C, and would hand it on to the programs it starts;
# the tests of Ctrl-C need the ordinary behaviour.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every CI run; on a developer's machine fewer, and new ones each time.
settings.register_profile("local", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


gc.disable()  # nothing of what is imported and collected is ever garbage


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _here(host: Any) -> bool:
    text = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text == "localhost"
    return address.is_loopback or address.is_unspecified


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Connections leave this machine in no test; loopback and unix sockets work (the local model uses them)."""
    getaddrinfo = socket.getaddrinfo

    def guarded(real: Callable[..., Any], place: int) -> Callable[..., Any]:
        def call(self: socket.socket, *given: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _here(given[place][0]):
                raise RuntimeError(f"a test tried to connect to {given[place]}; tests stay on this machine")
            return real(self, *given)

        return call

    def guarded_getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        if not _here(host):
            raise RuntimeError(f"a test tried to look up {host!r}; tests stay on this machine")
        return getaddrinfo(host, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name, place in (("connect", 0), ("connect_ex", 0), ("sendto", -1)):
            patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name), place))
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        # Child processes are not reached by the patches above: the clients they may run are told to stay offline.
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it, and what is printed would be folded
        patch.setenv("RLM_LOOP_LOG", "off")  # tests leave nothing in the log of whoever runs them
        patch.delenv("RLM_LOOP_MODEL", raising=False)  # it names the model of agents that are given none
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        yield
