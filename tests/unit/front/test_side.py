"""The side connections of one pair."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from gateway.front.leg import Leg
from gateway.front.side import KEEP_SECONDS, MAX_CONNECTIONS, SideConnections
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dialled, Refusal

from .fakes import NO_BROKER, Talker, frame_length

ONE, OTHER = Address("one", 1), Address("other", 1)


class World:
    """Brokers, and a pool of connections to them."""

    def __init__(self) -> None:
        self.connected: list[Address | None] = []
        self.brokers: list[Talker] = []
        self.denial: Denial | None = None
        self.side = SideConnections(self.connect)

    async def connect(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """See `Reach`."""
        self.connected.append(target)
        if self.denial is not None:
            return self.denial
        near, far = socket.socketpair()
        near.setblocking(False)
        self.brokers.append(Talker(far))
        assert target is not None
        return Leg(near, frame_length, 1000), Dialled(target)

    async def reach(self, target: Address = ONE) -> tuple[Leg, bool]:
        """Return a leg, and whether it is a new connection."""
        reached = await self.side.reach(target)
        assert not isinstance(reached, Denial)
        leg, dialled = reached
        assert dialled == Dialled(target, fresh=dialled.fresh)
        return leg, dialled.fresh

    def close(self) -> None:
        self.side.close()
        for broker in self.brokers:
            broker.close()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def is_open(leg: Leg) -> bool:
    return leg.stream.fileno() >= 0


async def test_a_new_connection_is_fresh(world: World) -> None:
    leg, fresh = await world.reach()
    assert fresh
    world.side.give_back([leg], usable=True)


async def test_a_returned_connection_is_used_again(world: World) -> None:
    leg, _ = await world.reach()
    world.side.give_back([leg], usable=True)
    assert await world.reach() == (leg, False)
    assert world.connected == [ONE]
    world.side.give_back([leg], usable=True)


async def test_a_connection_in_use_is_not_given_twice(world: World) -> None:
    first, _ = await world.reach()
    second, fresh = await world.reach()
    assert fresh
    assert first is not second
    world.side.give_back([first, second], usable=True)


async def test_each_broker_has_its_own_connections(world: World) -> None:
    leg, _ = await world.reach()
    world.side.give_back([leg], usable=True)
    other, fresh = await world.reach(OTHER)
    assert fresh
    world.side.give_back([other], usable=True)


async def test_a_failed_dial_is_returned(world: World) -> None:
    world.denial = NO_BROKER
    assert await world.side.reach(ONE) == NO_BROKER


async def test_a_failed_connection_is_not_used_again(world: World) -> None:
    leg, _ = await world.reach()
    world.side.give_back([leg], usable=False)
    assert not is_open(leg)
    assert (await world.reach())[1]


async def test_a_connection_with_unread_bytes_is_not_used_again(world: World) -> None:
    leg, _ = await world.reach()
    leg.received += b"x"
    world.side.give_back([leg], usable=True)
    assert not is_open(leg)


async def test_a_connection_that_the_broker_closed_is_replaced(world: World) -> None:
    leg, _ = await world.reach()
    world.side.give_back([leg], usable=True)
    world.brokers[0].close()
    other, fresh = await world.reach()
    assert fresh
    assert not is_open(leg)
    world.side.give_back([other], usable=True)


async def test_unused_connections_beyond_the_bound_are_closed_oldest_first(world: World) -> None:
    legs = [(await world.reach(Address("one", port)))[0] for port in range(MAX_CONNECTIONS + 3)]
    world.side.give_back(legs, usable=True)
    assert [is_open(leg) for leg in legs] == [False] * 3 + [True] * MAX_CONNECTIONS


async def test_used_and_unused_connections_share_one_bound(world: World) -> None:
    used = [(await world.reach(Address("one", port)))[0] for port in range(3)]
    unused = [(await world.reach(Address("other", port)))[0] for port in range(MAX_CONNECTIONS)]
    world.side.give_back(unused, usable=True)
    assert [is_open(leg) for leg in unused] == [False] * 3 + [True] * (MAX_CONNECTIONS - 3)
    used.append((await world.reach())[0])  # closes an unused one before it dials
    assert [is_open(leg) for leg in unused] == [False] * 4 + [True] * (MAX_CONNECTIONS - 4)
    assert all(map(is_open, used))
    world.side.give_back(used, usable=True)
    assert len(world.side) == MAX_CONNECTIONS


async def test_unused_connections_expire(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    assert world.side.expires_in is None
    first, _ = await world.reach()
    world.side.give_back([first], usable=True)
    await trio.sleep(KEEP_SECONDS / 2)
    second, _ = await world.reach(OTHER)
    world.side.give_back([second], usable=True)
    assert world.side.expires_in == pytest.approx(KEEP_SECONDS / 2)
    await trio.sleep(KEEP_SECONDS / 2)
    world.side.sweep()
    assert (is_open(first), is_open(second)) == (False, True)
    await trio.sleep(KEEP_SECONDS / 2)
    world.side.sweep()
    assert not is_open(second)
    assert world.side.expires_in is None


async def test_an_expired_connection_is_not_used_again(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    leg, _ = await world.reach()
    world.side.give_back([leg], usable=True)
    await trio.sleep(KEEP_SECONDS)
    assert (await world.reach())[1]
    assert not is_open(leg)


async def test_a_closed_pool_keeps_no_connection(world: World) -> None:
    unused, _ = await world.reach()
    used, _ = await world.reach()
    world.side.give_back([unused], usable=True)
    world.side.close()
    assert not is_open(unused)
    assert is_open(used)
    world.side.give_back([used], usable=True)
    assert not is_open(used)
    denial = await world.side.reach(ONE)
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.CLOSED
