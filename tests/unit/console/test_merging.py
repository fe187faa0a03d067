"""What several processes know, as one answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from gateway.console import merging
from gateway.console.asking import parts_of
from gateway.console.facts import Draining
from gateway.console.live import SHOWN
from gateway.console.paging import Page
from gateway.console.views import HISTORY, About, Views
from gateway.telemetry.figures import RuleFigures
from gateway.wire.account import Action
from tests.unit.console.world import World, passed

ORDERS = "persistent://acme/web/orders"
ABOUT = About("1", 0.0, lambda: "")


class Several:
    """Processes whose console is one."""

    def __init__(self, *worlds: World) -> None:
        self.worlds = worlds
        clock = partial(getattr, worlds[0], "now")
        self.views = Views(self._ask, ABOUT, clock, clock)

    async def _ask(self, question: str, value: Any) -> list[list[Any]]:
        answers = (parts_of(it.facts.answers(), question, value) for it in self.worlds)
        return [[part for part in parts if part is not None] for parts in answers]

    async def second(self) -> dict[str, Any] | None:
        for world in self.worlds:
            world.now += 1.0
        return await self.views.look()


@pytest.fixture
def several() -> Several:
    return Several(World(), World())


def in_order(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


async def test_a_topic_whose_clients_are_at_several_is_one_row(several: Several) -> None:
    accounts = [world.open(ORDERS) for world in several.worlds]
    assert await several.second() is None
    for number, account in enumerate(accounts, 1):
        passed(account, number, 10 * number)
    second = await several.second()
    assert second is not None
    (topic,), (tenant,) = second["topics"], second["tenants"]
    for row in (topic, tenant, second["now"]):
        assert row["to_broker"] == {"messages": 3.0, "bytes": 30.0}
    assert topic["producers"] == 2
    assert second["process"]["processes"] == 2
    (row,) = (await several.views.topics(Page()))["rows"]
    assert (row["messages_in"], row["bytes_in"], row["producers"]) == (3, 30, 2)


async def test_the_busiest_of_all_are_shown_busiest_first(several: Several) -> None:
    opened = [
        (world.open(f"persistent://t{at}/n/{number}"), 2 * number + at)
        for at, world in enumerate(several.worlds)
        for number in range(SHOWN)
    ]
    await several.second()
    for account, size in opened:
        passed(account, 1, size + 1)
    second = await several.second()
    assert second is not None
    sizes = [row["to_broker"]["bytes"] for row in second["topics"]]
    assert sizes == [float(size) for size in range(2 * SHOWN, SHOWN, -1)]


async def test_who_waits_is_added_up_by_rule(several: Several) -> None:
    accounts = [world.open(ORDERS) for world in several.worlds]
    await several.second()
    for account in accounts:
        account.begin_wait("r", 0.0)
        account.end_wait(0.5)
    second = await several.second()
    assert second is not None
    (held,) = second["held"]
    assert (held["waits"], held["wait_seconds"]) == (2, 1.0)


async def test_latencies_are_those_of_all_clients(several: Several) -> None:
    await several.second()
    for world in several.worlds:
        world.latencies.connect.add(0.01)
    second = await several.second()
    assert second is not None
    (connect,) = [it for it in second["latency"] if it["what"] == "connect"]
    assert connect["count"] == 2


async def test_a_page_of_connections_is_that_of_all(several: Several) -> None:
    for number in range(1, 41):
        several.worlds[number % 2].connect(number)
    found = await several.views.connections(Page(sort="id", descending=False, limit=5, offset=7))
    assert (found["total"], found["matching"]) == (40, 40)
    assert in_order(found["rows"], "id") == [8, 9, 10, 11, 12]


async def test_a_connection_is_found_where_it_is(several: Several) -> None:
    several.worlds[1].connect(7)
    several.worlds[1].open(ORDERS, Action.CONSUME, connection=7)
    found = await several.views.connection(7)
    assert found is not None
    assert in_order(found["accounts"], "topic") == [ORDERS]
    assert await several.views.connection(8) is None


async def test_rules_denials_and_listeners_are_added_up(several: Several) -> None:
    several.worlds[0].draining = Draining(10, 3)
    several.worlds[1].draining = Draining(5, 1)
    status = await several.views.status()
    (rule,), (denial,), (listener,) = status["rules"], status["denials"], status["listeners"]
    assert rule["rule"] == "r"
    assert status["expired"] == [{"rule": "r", "since": "2026-12-25T00:00:00Z"}]
    assert denial["number"] == 8
    assert (listener["listener"], listener["open"]) == ("l", 6)
    assert status["drain"] == {"began": 15, "connections": 4}
    assert status["process"]["buffered_bytes"] == 14
    assert (status["process"]["descriptors"], status["process"]["descriptor_limit"]) == (10, 100)


def test_a_rule_is_as_full_as_where_it_is_fullest() -> None:
    def seen(fill: float, whose: str) -> dict[str, Any]:
        rule = RuleFigures("r", "publish.messages", "enforce", waits=1, fill=fill, fullest=whose)
        return plain() | {"rules": [rule._asdict()]}

    (rule,) = merging.state([seen(0.2, "acme"), seen(0.7, "globex"), seen(0.0, "")])["rules"]
    assert (rule["waits"], rule["fill"], rule["fullest"]) == (3, 0.7, "globex")


@pytest.mark.parametrize(
    ("each", "told"),
    [
        ((["draining"], []), []),
        ((["draining"], ["draining", "x"]), ["draining", "x"]),
    ],
)
def test_all_are_unready_or_the_gateway_is_ready(
    each: tuple[list[str], ...], told: list[str]
) -> None:
    assert merging.state([plain() | {"ready": it} for it in each])["ready"] == told


@pytest.mark.parametrize(("other", "healthy"), [(True, True), (False, False)])
def test_a_broker_is_healthy_where_all_reach_it(other: bool, healthy: bool) -> None:
    def seen(healthy: bool) -> dict[str, Any]:
        return plain() | {"brokers": [{"cluster": "c", "broker": "b:1", "healthy": healthy}]}

    (broker,) = merging.state([seen(True), seen(other)])["brokers"]
    assert broker["healthy"] is healthy


async def test_no_process_that_answers_is_nothing_to_show() -> None:
    views = Several(World()).views
    views._ask = silent
    assert await views.look() is None
    assert (await views.status())["process"]["processes"] == 0
    assert (await views.topics(Page()))["rows"] == []


async def test_history_is_bounded_and_rest_forgets_the_last_look() -> None:
    world = World()
    for _ in range(HISTORY + 10):
        await world.second()
    assert len(world.views.history) == HISTORY
    await world.views.rest()
    assert await world.second() is None
    assert await world.second() is not None


async def silent(_question: str, _value: object) -> list[list[Any]]:
    return []


def plain() -> dict[str, Any]:
    (state,) = parts_of(World().facts.answers(), "state", None)
    return dict(state)
