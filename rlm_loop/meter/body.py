"""The body of a request: read as RFC 9112 says, bounded, and refused where two readers could differ on its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from io import BufferedIOBase

from rlm_loop.meter.request import Refused

#: Bytes of a request body at most: a 100 MB prompt is a mistake of the client's.
MOST = 256 * 1024 * 1024
#: Seconds without a byte after which a client that is in the middle of a request is gone.
PATIENCE = 60.0
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


def body_of(headers: Message, file: BufferedIOBase) -> bytes:
    """The whole body.  Raises `Refused` for one that has no clear end, is too long, or stops in the middle."""
    codings, lengths = headers.get_all("Transfer-Encoding", []), set(headers.get_all("Content-Length", []))
    try:
        if codings:
            if lengths or [c.strip().lower() for c in codings] != ["chunked"]:
                raise Refused("a body is either chunked or has a Content-Length; send one of them")
            return b"".join(_chunks(file))
        if not lengths:
            raise Refused("the request has no Content-Length; send a JSON body", status=411)
        length = lengths.pop()
        if lengths or not re.fullmatch("[0-9]{1,18}", length):
            raise Refused(f"Content-Length is not one number of bytes ({length[:40]!r}); send a JSON body")
        if int(length) > MOST:
            raise Refused(f"the request has {int(length):,} bytes, {MOST:,} is the most; send less", status=413)
        return _exactly(file, int(length))
    except TimeoutError:
        raise Refused(f"no byte of the request came for {PATIENCE:g} seconds; send it again", status=408) from None


def _chunks(file: BufferedIOBase) -> Iterator[bytes]:
    total = 0
    while True:
        size = _SIZE.fullmatch(file.readline(256))
        if size is None:
            raise Refused("the size of a chunk is no hexadecimal number of bytes; send a Content-Length")
        length = int(size[1], 16)
        total += length
        if total > MOST:
            raise Refused(f"the request has more than {MOST:,} bytes; send less", status=413)
        yield _exactly(file, length)
        if file.readline(2) not in (b"\r\n", b"\n"):
            raise Refused("a chunk is longer than its size says, or fields follow the body; send a Content-Length")
        if length == 0:
            return


def _exactly(file: BufferedIOBase, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise Refused(f"the request ended after {len(data):,} of {length:,} bytes; send it whole")
    return data
