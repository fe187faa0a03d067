"""A console over books that a test fills."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gateway.console.accounts import OpenAccounts
from gateway.console.actions import AdminActions
from gateway.console.asking import alone
from gateway.console.facts import ConnectionFacts, Draining, Facts, Sources
from gateway.console.feed import Feed
from gateway.console.site import site
from gateway.console.views import About, Views
from gateway.policy.accounts import AccountBook
from gateway.telemetry.figures import (
    BrokerHealth,
    Denied,
    ExpiredRule,
    ListenerFigures,
    PlaneFigures,
    RuleFigures,
)
from gateway.telemetry.latency import Histogram, ListenerLatencies, SlowSends
from gateway.wire.account import Account, Action
from gateway.wire.subject import Caller
from tests.support.subjects import subject_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class World:
    """A console of one process. `done`: what it was asked to do; `found`: whether it can close what
    it is asked to."""

    def __init__(
        self, token: bytes | None = None, *, is_public: bool = False, has_rules: bool = True
    ) -> None:
        self.accounts = OpenAccounts()
        self.book = AccountBook(watchers=[self.accounts])
        self.callers: list[Caller] = []
        self.latencies = ListenerLatencies(SlowSends())
        self.draining: Draining | None = None
        self.now = 0.0
        self.done: list[tuple[Any, ...]] = []
        self.found = True
        self.facts = Facts(self._sources(), lambda: self.now)
        doing = {name: partial(self._do, name) for name in ("close", "level", "trace")}
        ask = alone({**self.facts.answers(), **doing})
        about = About("1", 0.0, lambda: "version: 1\n")
        self.views = Views(ask, about, lambda: self.now, lambda: 1000.0 + self.now)
        self.feed = Feed(self.views)
        reload = partial(self._note, "reload") if has_rules else None
        actions = AdminActions(ask, partial(self._note, "drain"), reload)
        self.app = site(self.views, self.feed, actions, token, is_public=is_public)

    def _do(self, what: str, value: Any) -> Iterator[bool]:
        self.done.append((what, value))
        yield self.found

    def _note(self, what: str) -> None:
        self.done.append((what,))

    def _sources(self) -> Sources:
        return Sources(
            books={"main": self.book},
            accounts=self.accounts,
            connections=lambda: [
                ConnectionFacts(it.connection or 0, "l", f"{it.host}:1", it, "b:1", None, 5.0)
                for it in self.callers
            ],
            listeners={"l": ListenerFigures(open=3)},
            brokers=lambda: [BrokerHealth("main", "b:1", healthy=False)],
            rules=lambda: [RuleFigures("r", "publish.messages", "enforce")],
            expired=lambda: [ExpiredRule("r", "2026-12-25T00:00:00Z")],
            denied={Denied("l", "r", "produce", "enforce"): 4},
            latencies={"l": self.latencies},
            slow=SlowSends(),
            delays=Histogram(),
            plane=lambda: PlaneFigures(7, 0, 0, 0, 0, 0),
            unready=lambda: ["draining"],
            draining=lambda: self.draining,
            descriptors=lambda: (10, 100),
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
