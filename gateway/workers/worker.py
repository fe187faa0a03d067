"""`python -m gateway.workers.worker DESCRIPTOR`: serves clients for a parent, which started it.

All else it is told by the channel, whose descriptor that is.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import trio

from gateway.app import Application, logged, mistakes_told
from gateway.errors import ConfigurationError
from gateway.fleet.parent import ParentStore
from gateway.telemetry.figures import LogFigures
from gateway.workers.briefing import Briefing, read
from gateway.workers.channel import Channel, Handler
from gateway.workers.crew import MISTAKEN

PART = 64 * 1024
"""Characters of metrics that pass together: the parent takes them in half a millisecond."""


def main(arguments: Sequence[str]) -> int:
    """Serve; answers the exit status."""
    return trio.run(_work, socket.socket(fileno=int(arguments[0])))


async def _work(end: socket.socket) -> int:
    end.set_inheritable(False)
    handlers: dict[str, Handler] = {}
    channel = Channel(trio.SocketStream(trio.socket.from_stdlib_socket(end)), handlers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_converse, channel)
        try:
            (told,) = await channel.ask("briefing")
            briefing = read(told)
            log = logged(briefing.configuration, trace=briefing.trace, worker=briefing.worker)
            with log as lines, mistakes_told():
                await _serve(briefing, channel, handlers, lines)
        except trio.BrokenResourceError:
            return 0  # the parent is gone, before anything was begun
        except ConfigurationError as mistake:
            with suppress(trio.BrokenResourceError):
                await channel.ask("mistaken", str(mistake))
            return MISTAKEN
        finally:
            nursery.cancel_scope.cancel()
    return 0


async def _converse(channel: Channel) -> None:
    await channel.run()
    # The parent is gone: as if it had told us to stop. Others may have its place, and its port.
    signal.raise_signal(signal.SIGTERM)


async def _serve(
    briefing: Briefing, channel: Channel, handlers: dict[str, Handler], lines: LogFigures
) -> None:
    configuration = briefing.configuration
    application = Application(
        configuration.model_copy(update={"admin": None}),
        trace=briefing.trace,
        store=ParentStore(channel.ask),
        inherited=briefing.inherited(),
        lines=lines,
    )
    handlers["unready"] = lambda _: [application.unready()]
    if configuration.admin is not None:
        handlers["metrics"] = _in_parts(application.exposition())
    async with trio.open_nursery() as nursery:
        await nursery.start(application.serve)
        with suppress(trio.BrokenResourceError):  # then it drains already
            await channel.ask("ready")


def _in_parts(write: Callable[[], Iterator[bytes]]) -> Handler:
    def answer(_: object) -> Iterator[str]:
        for chunk in write():
            text = chunk.decode()
            yield from (text[at : at + PART] for at in range(0, len(text) or 1, PART))

    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
