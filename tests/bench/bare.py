"""`python -m tests.bench.bare PORT BROKER [TLS_PORT FILE]`: the least that a proxy of trio does.

It accepts, connects, and moves what comes, in one loop beside trio, as the gateway's own does. It
reads, counts, bounds and logs nothing, and a peer that does not read stops all others. So what it
takes, no gateway of trio can save: a task and a connect by set-up, and for TLS the way to OpenSSL
and back. FILE: a certificate with its key.
"""

from __future__ import annotations

import gc
import select
import socket
import ssl
import sys
import time
from collections.abc import Callable
from functools import partial

import trio

BUFFER = 512 << 10
"""Bytes; as much as the gateway reads at a time."""

LINGER = 0.005
"""Seconds to wait for the next event before trio has its turn, while nobody connects."""

CALM = 0.1
"""Seconds without a new connection after which nobody connects."""

ROUNDS = 100
"""Waits in a row."""

Move = Callable[[bytes], None]
"""Sends what has come on."""

Ends = tuple[socket.socket, socket.socket]


class Relay:
    """All connections. `context`: of the listener with TLS."""

    def __init__(self, broker: tuple[str, int], context: ssl.SSLContext | None) -> None:
        self._broker = broker
        self._context = context
        self._epoll = select.epoll()
        self._accepted = 0.0  # when the last connection was
        self._pairs: dict[int, tuple[Ends, Move]] = {}

    async def serve(self, port: int, *, secured: bool, task_status: trio.TaskStatus[None]) -> None:
        """Accept connections for ever."""
        host = self._broker[0]
        (listener,) = await trio.open_tcp_listeners(port, host=host, backlog=4096)
        task_status.started()
        async with trio.open_nursery() as nursery:
            while True:
                accepted, _ = await listener.socket.accept()
                self._accepted = time.monotonic()
                nursery.start_soon(self._connect, accepted, secured)

    async def _connect(self, accepted: trio.socket.SocketType, secured: bool) -> None:
        reached = trio.socket.socket()
        try:
            await reached.connect(self._broker)
        except OSError:  # whoever waits for the port comes before the broker is there
            accepted.close()
            reached.close()
            return
        client, broker = (socket.socket(fileno=it.detach()) for it in (accepted, reached))
        for sock in (client, broker):
            sock.setblocking(True)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        moves: tuple[Move, Move] = (broker.sendall, client.sendall)
        if secured:
            try:
                moves = await self._secure(client, broker)
            except OSError:  # the same
                client.close()
                broker.close()
                return
        for ends, move in zip(((client, broker), (broker, client)), moves, strict=True):
            self._pairs[ends[0].fileno()] = ends, move
            self._epoll.register(ends[0].fileno(), select.EPOLLIN)

    async def _secure(self, client: socket.socket, broker: socket.socket) -> tuple[Move, Move]:
        """Complete the TLS handshake. Return a function that decrypts bytes of the client for the
        broker, and one that encrypts bytes of the broker for the client; both send them too."""
        assert self._context is not None
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                client.sendall(outgoing.read())
                await trio.lowlevel.wait_readable(client)
                came = client.recv(BUFFER)
                if not came:
                    raise ConnectionResetError from None
                incoming.write(came)
            else:
                break
        client.sendall(outgoing.read())

        def decrypted(data: bytes) -> None:
            incoming.write(data)
            while incoming.pending:
                broker.sendall(tls.read(BUFFER))

        def encrypted(data: bytes) -> None:
            tls.write(data)
            client.sendall(outgoing.read())

        decrypted(b"")
        return decrypted, encrypted

    async def run(self) -> None:
        """Move for ever."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            is_calm = time.monotonic() - self._accepted > CALM
            for _ in range(ROUNDS):
                events = self._epoll.poll(LINGER if is_calm else 0)
                if not events:
                    break
                for fd, _ in events:
                    self._move(fd)

    def _move(self, fd: int) -> None:
        found = self._pairs.get(fd)
        if found is None:  # the other end has closed
            return
        ends, move = found
        try:
            data = ends[0].recv(BUFFER)
            if data:
                move(data)
                return
        except OSError:
            pass
        for sock in ends:
            del self._pairs[sock.fileno()]
            sock.close()


async def main(*arguments: str) -> None:
    """Serve both listeners."""
    port, broker, secured, file = (*arguments, "", "")[:4]
    context = None
    if file:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.set_ecdh_curve("prime256v1")
    host, _, number = broker.rpartition(":")
    relay = Relay((host, int(number)), context)
    gc.freeze()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(relay.run)
        if file:
            await nursery.start(partial(relay.serve, int(secured), secured=True))
        # The bench waits for this one.
        await nursery.start(partial(relay.serve, int(port), secured=False))


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
