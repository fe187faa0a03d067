"""`python -m tests.unit.workers.acting PART DESCRIPTOR`: plays the part of a worker."""

from __future__ import annotations

import os
import signal
import socket
import sys

import trio

from gateway.workers.channel import Channel


async def act(part: str, end: socket.socket) -> None:
    """Play one part until the process ends."""
    channel = Channel(
        trio.SocketStream(trio.socket.from_stdlib_socket(end)), {"who": lambda _: [os.getpid()]}
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run)
        if part == "mistaken":
            await channel.ask("mistaken", "this is wrong")
            os._exit(2)
        if part == "stopped":
            signal.signal(signal.SIGUSR1, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))
        if part == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await channel.ask("ready")
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(act, sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
