"""The demo's course: brokers, gateway and clients start, a table lives, all of it ends in order.

The end has an order. The clients finish first: they send no more, receive what is left, and close.
Then the gateway is asked for its last numbers and drains. The sandbox goes last.
"""

from __future__ import annotations

import math
import signal
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import trio
from rich.console import RenderableType

from gateway.demo import figures, stage, summary, table
from gateway.demo.children import PATIENCE, Child
from gateway.demo.plan import COUNTS, FLOWS, READY
from gateway.demo.ports import Ports
from gateway.demo.screen import console, draw, screen
from gateway.demo.tally import Counts
from gateway.demo.witness import Witness

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

EVERY = 1.0
"""Seconds between two looks at the gateway's metrics."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the person asked for. `seconds` of load, None until a signal; `brokers` a service URL,
    None for the sandbox; `picture` a file for the last table.
    """

    ports: Ports
    seconds: float | None = None
    brokers: str | None = None
    picture: Path | None = None


async def perform(settings: Settings) -> int:
    """Run the demo to its end; answers the exit status.

    Raises `ChildError` where a child ended by itself, `ConfigurationError` where nothing starts.
    """
    status = 1  # of a demo that a second signal ended
    demo = _Demo(settings)
    with trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_obey, signals, demo, nursery.cancel_scope)
            status = await demo.perform()
            nursery.cancel_scope.cancel()
    return status


async def _obey(signals: AsyncIterator[int], demo: _Demo, everything: trio.CancelScope) -> None:
    """The first signal ends the demo in order, the second at once."""
    await anext(signals)
    demo.playing.cancel()
    await anext(signals)
    demo.say("ended at once, by a second signal; no counts were compared")
    everything.cancel()


class _Demo:
    def __init__(self, settings: Settings) -> None:
        self.playing = trio.CancelScope()
        """Ends in order where it is cancelled."""
        self._settings = settings
        self._console = console()
        self._begin = 0.0
        self._witness = Witness()
        self._last: RenderableType | None = None

    def say(self, text: str) -> None:
        """Tell the person what happens now."""
        self._console.print(f"== {text}", markup=False, style="dim")

    async def perform(self) -> int:
        """The whole course; answers the exit status."""
        given, ports = self._settings.brokers, self._settings.ports
        async with stage.brokers(given, ports) as behind, AsyncExitStack() as children:
            folder = Path(children.enter_context(tempfile.TemporaryDirectory()))
            clients = None
            with self.playing:
                self.say(f"starting the gateway in front of {behind.service_url}")
                gateway = await children.enter_async_context(stage.gateway(behind, ports, folder))
                self.say("starting the clients")
                clients = await children.enter_async_context(stage.clients(ports, folder))
                await stage.report(clients, READY, stage.OPEN_SECONDS)
                await self._show(behind, gateway, clients)
            if not self._begin or clients is None:
                self.say("stopped before any message was sent")
                return 0
            return await self._finish(behind, gateway, clients)

    # -- while it runs -----------------------------------------------------------------------

    async def _show(self, behind: stage.Behind, gateway: Child, clients: Child) -> None:
        self._begin = trio.current_time()
        ends = self._begin + (self._settings.seconds or math.inf)
        with screen(self._console) as shown:
            recent = deque([await self._look(behind, gateway)], maxlen=shown.span + 1)
            ticks = count(self._begin + EVERY, EVERY)
            while trio.current_time() < ends:
                await trio.sleep_until(min(next(ticks), ends))
                gateway.require()
                clients.require()
                recent.append(await self._look(behind, gateway))
                self._last = table.rendered(self._board(behind, recent))
                shown.show(self._last)

    async def _look(self, behind: stage.Behind, gateway: Child) -> figures.Snapshot:
        try:
            _, text = await stage.ask("GET", self._settings.ports.admin, "/metrics")
        except OSError as error:
            gateway.require()
            raise gateway.failure(f"does not answer for its metrics ({error})") from error
        found = figures.read(text, trio.current_time())
        self._witness.see(found, await stage.owners(behind))
        return found

    def _board(self, behind: stage.Behind, recent: Sequence[figures.Snapshot]) -> table.Board:
        now = recent[-1]
        topics = now.topics.values()
        return table.Board(
            seconds=now.at - self._begin,
            rates=figures.rates(recent[0], now),
            owners=self._witness.owners,
            expected=[flow.topic for flow in FLOWS],
            connections=now.connections,
            passed=(sum(it.messages_in for it in topics), sum(it.messages_out for it in topics)),
            ports=self._settings.ports,
            brokers="two sandbox brokers" if behind.control else behind.service_url,
            movable=behind.control is not None,
        )

    # -- the end -----------------------------------------------------------------------------

    async def _finish(self, behind: stage.Behind, gateway: Child, clients: Child) -> int:
        self.say("the clients finish: what was sent is received, then they close")
        await clients.close_input()
        told = await stage.report(clients, COUNTS, stage.FINISH_SECONDS)
        counts = {topic: Counts(**each) for topic, each in told.items()}
        if await clients.ended(stage.CLOSE_SECONDS) is None:
            self.say("the clients do not close: a connection does not answer")
        last = await self._look(behind, gateway)
        self.say("the gateway drains")
        status = await gateway.stop(PATIENCE)
        if status != 0:
            raise gateway.failure(f"did not end in good order (status {status})")
        witness = self._witness
        return self._conclude(summary.compare(counts, last, witness.moved, witness.visited))

    def _conclude(self, rows: list[summary.Row]) -> int:
        self._console.print(summary.rendered(rows))
        if self._settings.picture is not None and self._last is not None:
            draw(self._last, self._settings.picture)
            self.say(f"the picture is {self._settings.picture}")
        return 0 if summary.is_good(rows) else 1
