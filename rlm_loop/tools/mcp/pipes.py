"""A server that is a process: JSON lines through its standard input and output, with a limit for each line.

The SDK has such a transport, which keeps a line of any length, waits six seconds for a server that does not go, and
gives standard error to whoever owns ours (in a notebook that is no file).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from rlm_loop.models.http import LONGEST

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from rlm_loop.tools.mcp.address import McpServer

_GRACE = 1.0  # seconds for a server whose input was closed, and again for one that got SIGTERM


@asynccontextmanager
async def over_pipes(server: McpServer, said: deque[str], status: list[int | None]) -> AsyncGenerator[TransportStreams]:
    """Start the process and end its whole group; lines of its standard error go to `said`, its status to `status`."""
    process = await asyncio.create_subprocess_exec(
        *server.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**_environment(), **server.env},
        cwd=server.cwd,
        start_new_session=True,
        limit=LONGEST,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    received, to_session = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_session, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process.stdout, received, process, said, status)),
        asyncio.create_task(_write(process.stdin, to_send)),
        asyncio.create_task(_listen(process.stderr, said)),
    ]
    try:
        yield to_session, from_session
    finally:
        process.stdin.close()
        await asyncio.shield(_ended(process))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (received, to_session, from_session, to_send):
            stream.close()
        process._transport.close()  # type: ignore[attr-defined]  # pyright: ignore  # a child may hold its pipes open


def _environment() -> dict[str, str]:
    """What the SDK passes on, which holds no keys; `python` is this interpreter."""
    own = get_default_environment()
    return {**own, "PATH": os.pathsep.join([str(Path(sys.executable).parent), own.get("PATH", os.defpath)])}


async def _read(
    stdout: asyncio.StreamReader,
    received: anyio.abc.ObjectSendStream[SessionMessage | Exception],
    process: asyncio.subprocess.Process,
    said: deque[str],
    status: list[int | None],
) -> None:
    """Hand over each message; what is none (a greeting, say) is left out.  The session learns of the end."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        try:
            while line := await stdout.readline():
                with suppress(ValueError):
                    await received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
        except ValueError:  # a line beyond the limit: what follows it cannot be trusted to begin a message
            said.append(f"it sent a line of more than {LONGEST:,} bytes")
            _signal(process, signal.SIGKILL)
        await _gone(process, 0.2)  # so that the status is known when the calls under way are told
        status.append(process.returncode)
    await received.aclose()


async def _write(stdin: asyncio.StreamWriter, to_send: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
    with suppress(ConnectionError):
        async for message in to_send:
            stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await stdin.drain()


async def _listen(stderr: asyncio.StreamReader, said: deque[str]) -> None:
    rest = b""
    while chunk := await stderr.read(65536):
        *lines, rest = (rest + chunk)[-65536:].split(b"\n")
        said.extend(text for line in lines if (text := line.decode("utf-8", "replace").strip()))


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the process; signal its group where it stays, and kill what is left of that in any case."""
    if not await _gone(process, _GRACE):
        _signal(process, signal.SIGTERM)
        await _gone(process, _GRACE)
    _signal(process, signal.SIGKILL)
    await _gone(process, _GRACE)


async def _gone(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether it ended in time.  `process.wait()` would wait for its pipes too, which a child may hold open."""
    until = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.005)
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
