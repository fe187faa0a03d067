"""Runs the demonstration: starts brokers, gateway and clients, draws a table, ends in order.

The clients finish first: they stop sending, receive the remaining messages, and close. Then the
gateway is scraped for the last time and drains. The sandbox ends last.
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

from gateway.admin.routes import METRICS, TOPICS
from gateway.lab.demo import figures, stage, summary, table
from gateway.lab.demo.children import STOP_SECONDS, Child
from gateway.lab.demo.plan import COUNTS, FLOWS_OF, PULSAR, READY
from gateway.lab.demo.ports import Ports
from gateway.lab.demo.screen import console, draw, screen
from gateway.lab.demo.tally import ClientCounts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SCRAPE_SECONDS = 1.0
"""Seconds between two scrapes of the gateway's metrics."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's options. `seconds`: how long clients send; None: until a signal. `brokers`: the
    service URL of brokers; None: a sandbox is started. `picture`: a file for a picture of the last
    table. `protocol`: what brokers and clients speak."""

    ports: Ports
    seconds: float | None = None
    brokers: str | None = None
    picture: Path | None = None
    protocol: str = PULSAR


async def perform(settings: Settings) -> int:
    """Run the demonstration to its end, and return the exit status.

    Raises `ChildError` if a child process ended by itself, `ConfigurationError` if the
    demonstration cannot start.
    """
    status = 1  # if a second signal ends the demonstration
    demo = _Demo(settings)
    with trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_on_signals, signals, demo, nursery.cancel_scope)
            status = await demo.perform()
            nursery.cancel_scope.cancel()
    return status


async def _end_on_signals(
    signals: AsyncIterator[int], demo: _Demo, all_tasks: trio.CancelScope
) -> None:
    """End the demonstration in order at the first signal, at once at the second."""
    await anext(signals)
    demo.scope.cancel()
    await anext(signals)
    demo.say("ended at once, by a second signal; no counts were compared")
    all_tasks.cancel()


class _Demo:
    def __init__(self, settings: Settings) -> None:
        self.scope = trio.CancelScope()
        """Cancel it to end in order."""
        self._settings = settings
        self._console = console()
        self._begin = 0.0
        self._flows = FLOWS_OF[settings.protocol]
        self._witness = figures.Witness(self._flows)
        self._last: RenderableType | None = None

    def say(self, text: str) -> None:
        """Print what the demonstration does next."""
        self._console.print(f"== {text}", markup=False, style="dim")

    async def perform(self) -> int:
        """Run the demonstration to its end, and return the exit status."""
        settings, ports = self._settings, self._settings.ports
        started = stage.brokers(settings.brokers, ports, settings.protocol)
        async with started as upstream, AsyncExitStack() as children:
            folder = Path(children.enter_context(tempfile.TemporaryDirectory()))
            clients = None
            with self.scope:
                self.say(f"starting the gateway in front of {upstream.service_url}")
                gateway = await children.enter_async_context(stage.gateway(upstream, ports, folder))
                self.say("starting the clients")
                clients = await children.enter_async_context(stage.clients(upstream, ports, folder))
                await stage.read_report(clients, READY, stage.OPEN_SECONDS)
                await self._show(upstream, gateway, clients)
            if not self._begin or clients is None:
                self.say("stopped before any message was sent")
                return 0
            return await self._finish(upstream, gateway, clients)

    # -- while it runs -----------------------------------------------------------------------

    async def _show(self, upstream: stage.Upstream, gateway: Child, clients: Child) -> None:
        self._begin = trio.current_time()
        ends = self._begin + (self._settings.seconds or math.inf)
        with screen(self._console) as shown:
            recent = deque([await self._scrape(upstream, gateway)], maxlen=shown.span + 1)
            ticks = count(self._begin + SCRAPE_SECONDS, SCRAPE_SECONDS)
            while trio.current_time() < ends:
                await trio.sleep_until(min(next(ticks), ends))
                gateway.require_running()
                clients.require_running()
                recent.append(await self._scrape(upstream, gateway))
                self._last = table.render(self._board(upstream, recent))
                shown.show(self._last)

    async def _scrape(self, upstream: stage.Upstream, gateway: Child) -> figures.Snapshot:
        try:
            port = self._settings.ports.admin
            texts = [(await stage.request("GET", port, path))[1] for path in (METRICS, TOPICS)]
        except OSError as error:
            gateway.require_running()
            raise gateway.failure(f"does not serve its metrics ({error})") from error
        snapshot = figures.read("".join(texts), trio.current_time())
        self._witness.observe(snapshot, await stage.owners(upstream))
        return snapshot

    def _board(self, upstream: stage.Upstream, recent: Sequence[figures.Snapshot]) -> table.Board:
        now = recent[-1]
        topics = now.topics.values()
        return table.Board(
            seconds=now.at - self._begin,
            rates=figures.rates(recent[0], now),
            owners=self._witness.owners,
            expected=[flow.topic for flow in self._flows],
            limits={flow.topic: flow.limit for flow in self._flows if flow.limit},
            connections=now.connections,
            passed=(
                sum(topic.messages_in for topic in topics),
                sum(topic.messages_out for topic in topics),
            ),
            ports=self._settings.ports,
            brokers="two sandbox brokers" if upstream.is_sandbox else upstream.service_url,
            movable=upstream.control is not None,
            protocol=upstream.protocol,
        )

    # -- the end -----------------------------------------------------------------------------

    async def _finish(self, upstream: stage.Upstream, gateway: Child, clients: Child) -> int:
        self.say("the clients finish: they receive the remaining messages and close")
        await clients.close_input()
        reported = await stage.read_report(clients, COUNTS, stage.FINISH_SECONDS)
        counts = {topic: ClientCounts(**each) for topic, each in reported.items()}
        if await clients.wait(stage.CLOSE_SECONDS) is None:
            self.say("the clients do not close: a connection does not answer")
        last = await self._scrape(upstream, gateway)
        self.say("the gateway drains")
        status = await gateway.stop(STOP_SECONDS)
        if status != 0:
            raise gateway.failure(f"did not end in good order (status {status})")
        witness = self._witness
        return self._conclude(summary.compare(counts, last, witness.moved, witness.visited))

    def _conclude(self, rows: list[summary.SummaryRow]) -> int:
        self._console.print(summary.render(rows))
        if self._settings.picture is not None and self._last is not None:
            draw(self._last, self._settings.picture)
            self.say(f"the picture is {self._settings.picture}")
        return 0 if summary.all_good(rows) else 1
