"""`python -m gateway.workers.worker DESCRIPTOR`: serves clients for the parent that started it.

The descriptor is the worker's end of the channel, through which it gets everything else.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from gateway.app import Application, configuration_errors_unwrapped, configured_log
from gateway.assembly import make_export
from gateway.console.asking import parts_of
from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.fleet.parent import ParentStore
from gateway.telemetry.figures import LogFigures
from gateway.workers.briefing import Briefing, decode
from gateway.workers.channel import Channel, Handler

if TYPE_CHECKING:
    from gateway.otlp.export import Export

PART = 64 * 1024
"""Characters of metrics in one message: the parent reads them in half a millisecond."""


def main(arguments: Sequence[str]) -> int:
    """Serve clients until stopped, and return the exit status. `arguments`: one number,
    the file descriptor of the channel to the parent."""
    return trio.run(_run, socket.socket(fileno=int(arguments[0])))


async def _run(end: socket.socket) -> int:
    end.set_inheritable(False)
    handlers: dict[str, Handler] = {}
    channel = Channel(trio.SocketStream(trio.socket.from_stdlib_socket(end)), handlers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_run_channel, channel)
        try:
            (text,) = await channel.ask("briefing")
            briefing = decode(text)
            number, trace = briefing.worker, briefing.trace
            export = make_export(briefing.configuration, number)
            log = configured_log(briefing.configuration, trace=trace, export=export, worker=number)
            with log as lines, configuration_errors_unwrapped():
                await _serve(briefing, channel, handlers, lines, export)
        except trio.BrokenResourceError:
            return 0  # the parent ended before this worker started to serve
        except ConfigurationError as mistake:
            with suppress(trio.BrokenResourceError):
                await channel.ask("mistaken", str(mistake))
            return BAD_CONFIGURATION
        finally:
            nursery.cancel_scope.cancel()
    return 0


async def _run_channel(channel: Channel) -> None:
    await channel.run()
    # The parent is gone: drain as at its SIGTERM. Another gateway may take its place and port.
    signal.raise_signal(signal.SIGTERM)


async def _serve(
    briefing: Briefing,
    channel: Channel,
    handlers: dict[str, Handler],
    lines: LogFigures,
    export: Export | None,
) -> None:
    configuration = briefing.configuration
    application = Application(
        configuration.model_copy(update={"admin": None}),
        trace=briefing.trace,
        store=ParentStore(channel.ask),
        inherited=briefing.inherited(),
        lines=lines,
        export=export,
    )
    handlers["unready"] = lambda _: [application.unready()]
    if configuration.admin is not None:
        handlers |= {
            path: _in_parts(exposition) for path, exposition in application.expositions().items()
        }
    if configuration.console is not None:
        answers = application.console_answers()
        handlers["console"] = lambda question: parts_of(answers, *question)
    async with trio.open_nursery() as nursery:
        await nursery.start(application.serve)
        with suppress(trio.BrokenResourceError):  # the parent is gone, and the worker drains
            await channel.ask("ready")


def _in_parts(write: Callable[[], Iterator[bytes]]) -> Handler:
    def answer(_: object) -> Iterator[str]:
        for chunk in write():
            text = chunk.decode()
            yield from (text[at : at + PART] for at in range(0, len(text) or 1, PART))

    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
