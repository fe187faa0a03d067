"""A console over books that a test fills."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING

from gateway.console.accounts import OpenAccounts
from gateway.console.feed import Feed
from gateway.console.site import site
from gateway.console.views import ConnectionFacts, Draining, Sources, Views
from gateway.policy.accounts import AccountBook
from gateway.telemetry.figures import (
    BrokerHealth,
    Denied,
    ListenerFigures,
    PlaneFigures,
    RuleFigures,
)
from gateway.telemetry.latency import Histogram, ListenerLatencies, SlowSends
from gateway.wire.account import Account, Action
from gateway.wire.subject import Caller
from tests.support.subjects import subject_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class FakeDesk:
    """Remembers what it was asked for. `refused`: what it says to everything."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.refused: str | None = None

    def close(self, connection: int) -> str | None:
        return self._note("close", connection)

    def drain(self) -> str | None:
        return self._note("drain")

    def reload(self) -> str | None:
        return self._note("reload")

    def set_level(self, level: str, event: str | None, seconds: float) -> str | None:
        return self._note("log", level, event, seconds)

    def trace(self, network: IPv4Network | IPv6Network, seconds: float) -> str | None:
        return self._note("trace", str(network), seconds)

    def _note(self, *asked: object) -> str | None:
        self.asked.append(asked)
        return self.refused


class World:
    def __init__(self, token: bytes | None = None, *, is_public: bool = False) -> None:
        self.accounts = OpenAccounts()
        self.book = AccountBook(watchers=[self.accounts])
        self.callers: list[Caller] = []
        self.latencies = ListenerLatencies(SlowSends())
        self.draining: Draining | None = None
        self.now = 0.0
        self.desk = FakeDesk()
        self.views = Views(self._sources(), lambda: self.now, lambda: 1000.0 + self.now)
        self.feed = Feed(self.views)
        self.app: ASGIApp = site(self.views, self.feed, self.desk, token, is_public=is_public)

    def _sources(self) -> Sources:
        return Sources(
            version="1",
            started_at=0.0,
            books={"main": self.book},
            accounts=self.accounts,
            connections=lambda: [
                ConnectionFacts(it.connection or 0, "l", f"{it.host}:1", it, "b:1", None, 5.0)
                for it in self.callers
            ],
            listeners={"l": ListenerFigures(open=3)},
            brokers=lambda: [BrokerHealth("main", "b:1", healthy=False)],
            rules=lambda: [RuleFigures("r", "publish.messages", "enforce")],
            denied={Denied("l", "r", "produce", "enforce"): 4},
            latencies={"l": self.latencies},
            slow=SlowSends(),
            delays=Histogram(),
            plane=lambda: PlaneFigures(7, 0, 0, 0, 0, 0),
            unready=lambda: ["draining"],
            draining=lambda: self.draining,
            descriptors=lambda: (10, 100),
            configuration=lambda: "version: 1\n",
        )

    def connect(self, id: int, principal: str = "alice") -> None:
        caller = Caller("pulsar", "l", "main", id, f"192.0.2.{id % 250}", principal, "lib")
        self.callers.append(caller)

    def open(self, topic: str, action: Action = Action.PRODUCE, connection: int = 1) -> Account:
        return self.book.open(action, subject_of(topic, connection=connection, listener="l"))

    async def second(self, seconds: float = 1.0) -> dict[str, object] | None:
        self.now += seconds
        return await self.views.look()


def passed(account: Account, messages: int, size: int) -> None:
    account.count(messages)
    account.bytes += size
