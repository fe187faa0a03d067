"""Adapts streams of the data plane to trio's interface of streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from gateway.listening.readiness import Readiness
from gateway.plane.stream import IN, OUT, Stream, has_records, shut


async def readable(stream: Stream, wait: Callable[[Stream], Awaitable[None]]) -> None:
    """Wait until `recv` may return bytes. `wait`: waits until bytes have come on the socket."""
    if has_records(stream) and stream.buffered:
        await trio.lowlevel.checkpoint()
    elif has_records(stream) and stream.receives_on == OUT:
        await trio.lowlevel.wait_writable(stream.fileno())
    else:
        await wait(stream)


async def writable(stream: Stream) -> None:
    """Wait until `send` may accept bytes."""
    if has_records(stream) and stream.sends_on == IN:
        await trio.lowlevel.wait_readable(stream.fileno())
    else:
        await trio.lowlevel.wait_writable(stream.fileno())


class Flow(trio.abc.HalfCloseableStream):
    """Adapts one stream of the data plane. `readiness`: wakes the tasks that read, in turn."""

    def __init__(self, stream: Stream, readiness: Readiness) -> None:
        self._stream = stream
        self._readiness = readiness

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See `trio.abc.ReceiveStream`."""
        assert max_bytes is not None
        while True:
            await readable(self._stream, self._readiness.readable)
            try:
                return self._stream.recv(max_bytes)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See `trio.abc.SendStream`."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._stream.send(rest) :]
            except BlockingIOError:
                await writable(self._stream)
            except OSError as error:
                raise trio.BrokenResourceError from error
        await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        """See `trio.abc.SendStream`."""
        await writable(self._stream)

    async def send_eof(self) -> None:
        """See `trio.abc.HalfCloseableStream`."""
        shut(self._stream)
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close the stream at once."""
        self._stream.close()
        await trio.lowlevel.checkpoint()
