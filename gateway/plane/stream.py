"""The stream below a lane or a leg: a plain socket, or a stream of records such as TLS.

A `Stream` has a socket's methods, so a plain socket is a stream at no cost. A `RecordStream`
differs from a socket in three ways, which lanes and legs take care of:

- It may hold received bytes that are not read yet (`buffered`). The kernel does not report them, so
  they are read without waiting for an event.
- It may have to send before it can receive, and the reverse, as TLS does for a change of keys:
  `receives_on` and `sends_on` tell the readiness to wait for.
- It knows more about its peer: the certificate, and the server name that a client asked for.
"""

from __future__ import annotations

import contextlib
import select
import socket
from typing import Any, Protocol, TypeGuard

IN = select.EPOLLIN
OUT = select.EPOLLOUT


class Stream(Protocol):
    """A connected, non-blocking stream. All methods but `close` may raise `OSError`.

    `recv_into` and `recv` return 0 bytes at the end of the stream, and raise `BlockingIOError`
    while there are none. `recv_into` fills as much of the buffer as it can without waiting. `send`
    returns how many bytes it took, or raises `BlockingIOError`; the caller offers the other bytes
    again, the same bytes first.
    """

    def fileno(self) -> int: ...

    def recv(self, size: int, /) -> bytes: ...

    def recv_into(self, buffer: bytearray | memoryview, size: int, /) -> int: ...

    def send(self, data: bytes | memoryview, /) -> int: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...

    def getpeername(self) -> Any: ...  # as of a socket


class RecordStream(Stream, Protocol):
    """A stream of records, such as TLS.

    `buffered`: `recv_into` would return bytes although the socket has none. `receives_on`,
    `sends_on`: `IN` or `OUT`, the readiness that receiving and sending wait for after
    `BlockingIOError`. `certificate`: the peer's, in DER; None if it showed none. `server_name`: the
    name that the client asked for (RFC 6066 section 3).
    """

    @property
    def buffered(self) -> bool: ...

    @property
    def receives_on(self) -> int: ...

    @property
    def sends_on(self) -> int: ...

    @property
    def certificate(self) -> bytes | None: ...

    @property
    def server_name(self) -> str | None: ...

    def is_open(self) -> bool:
        """Return whether the connection is open: False if the kernel knows that the peer has closed
        it."""
        ...


def has_records(stream: Stream) -> TypeGuard[RecordStream]:
    """Return whether a stream is a `RecordStream`, not a plain socket."""
    return not isinstance(stream, socket.socket)


def is_open(stream: Stream) -> bool:
    """Return whether a connection is open: False if the kernel knows that the peer has closed
    it."""
    if has_records(stream):
        return stream.is_open()
    assert isinstance(stream, socket.socket)
    try:
        return bool(stream.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


def shut(stream: Stream) -> None:
    """Tell the peer that nothing more is sent. Bytes that the peer still sends can be read."""
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_WR)
