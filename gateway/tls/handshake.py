"""Awaits the handshake of a TLS stream, and says why it failed.

A step of a handshake computes for up to some milliseconds, in which nothing else of the process
runs. So all handshakes take their steps in turn, one between two turns of the reactor, however many
clients ask at once: open connections lose no more than that step.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

import trio

from gateway.plane.stream import Stream
from gateway.tls.stream import Shake, TlsStream


def reason_of(error: OSError) -> str:
    """Return why a connection or its handshake failed, for logs."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error) or type(error).__name__


async def readable(stream: Stream) -> None:
    """Wait until bytes have come on the socket of a stream."""
    await trio.lowlevel.wait_readable(stream.fileno())


async def shake(
    stream: TlsStream,
    readable: Callable[[Stream], Awaitable[None]] = readable,
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Carry out the TLS handshake of a stream, step by step. The caller bounds the time, and closes
    the stream.

    `readable`: waits for bytes. `waiting`: makes the context that is entered during each wait for
    the peer. Raises `OSError` (as `ssl.SSLError` is) if the handshake fails.
    """
    while True:
        async with stream.turn:
            state = stream.shake()
        if state is Shake.DONE:
            return
        with waiting():
            if state is Shake.READS:
                await readable(stream)
            else:
                await trio.lowlevel.wait_writable(stream.fileno())
