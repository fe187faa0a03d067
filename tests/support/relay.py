"""Copies bytes from one socket to another."""

import socket
from collections.abc import Callable
from contextlib import suppress

READ_SIZE = 256 * 1024


def relay(
    source: socket.socket, sink: socket.socket, keep: Callable[[bytes], object] | None = None
) -> None:
    """Copy until either end is gone, and pass the end of the stream on. `keep` gets each chunk.

    The other direction continues until its own end, so that its pending bytes reach their reader.
    """
    with suppress(OSError):
        while chunk := source.recv(READ_SIZE):
            if keep is not None:
                keep(chunk)
            sink.sendall(chunk)
    shut(sink, socket.SHUT_WR)
    shut(source, socket.SHUT_RD)


def shut(end: socket.socket, how: int) -> None:
    """Shut down one direction of a socket, or both (`how`). A closed socket is ignored."""
    with suppress(OSError):
        end.shutdown(how)
