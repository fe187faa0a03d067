"""One client does not starve the others under a limit, whatever it sends, and however often it
opens its producers again."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gateway.policy.debts import Debts
from gateway.policy.gcra import Meter
from gateway.policy.limits import LARGE_DEBT, Limit
from tests.unit.policy.world import Frame, Producer, World, jain, messages, size

RATE = 1000
LIMIT = messages(RATE)
ONE = Frame(1, 100)
VICTIM, NEIGHBOUR = "victim", "neighbour"


@dataclass
class Passed:
    """Messages per second."""

    victim: float
    neighbour: float

    @property
    def total(self) -> float:
        return self.victim + self.neighbour


class Street:
    """A victim that sends single messages without end, and a neighbour with some producers, each of
    which always has a batch to send. `closes`: a producer is closed after its batch and another one
    opened; `leaves`: another one is opened and it stays open."""

    def __init__(
        self, batch: int, producers: int = 1, *, closes: bool = False, leaves: bool = False
    ) -> None:
        self.world = World()
        self.victim = self.world.opens(LIMIT, client=VICTIM)
        self.world.floods(ONE, self.victim)
        self.batch, self.closes, self.leaves = batch, closes, leaves
        self.neighbours = [self.world.opens(LIMIT, client=NEIGHBOUR) for _ in range(producers)]
        self.gone = 0

    def plays(self, seconds: float) -> Passed:
        before = self.victim.total.messages, self.count
        end = self.world.now + seconds
        while self.world.now < end:
            self.neighbours = [self.sends(it) for it in self.neighbours]
            self.world.runs(0.01)
        victim = self.victim.total.messages - before[0]
        return Passed(victim / seconds, (self.count - before[1]) / seconds)

    @property
    def count(self) -> int:
        return self.gone + sum(it.total.messages for it in self.neighbours)

    def sends(self, producer: Producer) -> Producer:
        if producer.queue:
            return producer
        if producer.total.messages and (self.closes or self.leaves):
            self.gone += producer.total.messages
            if self.closes:
                self.world.closes(producer)
            producer = self.world.opens(LIMIT, client=NEIGHBOUR)
        self.world.sends(producer, self.batch)
        return producer


@pytest.mark.parametrize(
    ("batch", "how"),
    [
        *((batch, how) for batch in (100, 1_000, 5_000, 10_000) for how in ("stays", "closes")),
        (5_000, "leaves"),
        (10_000, "leaves"),
    ],
)
def test_a_client_with_batches_leaves_half_to_the_other(batch: int, how: str) -> None:
    passed = Street(batch, closes=how == "closes", leaves=how == "leaves").plays(60)
    assert passed.victim >= 0.4 * RATE
    assert passed.total <= 1.3 * RATE


@pytest.mark.parametrize("how", ["stays", "closes", "leaves"])
def test_a_client_with_a_huge_batch_waits_until_the_other_had_as_much(how: str) -> None:
    """The other one waits until the batch is earned, and nothing is forgiven."""
    passed = Street(20_000, closes=how == "closes", leaves=how == "leaves").plays(200)
    assert passed.victim >= 0.4 * RATE
    assert passed.total <= 1.1 * RATE


@pytest.mark.parametrize("how", ["stays", "closes", "leaves"])
def test_many_producers_of_a_client_pass_no_more_than_the_rate(how: str) -> None:
    passed = Street(20_000, 5, closes=how == "closes", leaves=how == "leaves").plays(200)
    assert passed.total <= 1.1 * RATE


def test_each_producer_has_its_share_though_others_are_opened_again() -> None:
    passed = Street(1_000, 4, closes=True).plays(120)
    assert passed.victim >= 0.8 * RATE / 5
    assert passed.total <= 1.05 * RATE


@pytest.mark.parametrize("batch", [100, 1_000])
def test_a_producer_has_its_share_though_a_client_opens_ever_more(batch: int) -> None:
    street = Street(batch, leaves=True)
    passed = street.plays(60)
    assert passed.victim >= RATE / len(street.world.producers)
    assert passed.total <= 1.05 * RATE


def test_idle_producers_save_up_no_turns() -> None:
    world = World()
    victim = world.opens(LIMIT, client=VICTIM)
    idle = [world.opens(LIMIT, client=NEIGHBOUR) for _ in range(20)]
    for producer in idle:
        world.sends(producer)
        world.runs(1)
    world.runs(1000)
    world.floods(ONE, victim)
    for producer in idle:
        if not producer.queue:
            world.sends(producer, 1_000)
    before = victim.total.messages
    world.runs(60)
    assert victim.total.messages - before >= 0.5 * 60 * RATE


def test_a_client_without_debt_starts_at_the_clock() -> None:
    street = Street(20_000)
    street.plays(21)
    newcomer = street.world.opens(LIMIT, client="somebody else")
    street.world.floods(ONE, newcomer)
    before = newcomer.total.messages, street.victim.total.messages
    street.plays(10)
    passed = newcomer.total.messages - before[0], street.victim.total.messages - before[1]
    assert jain(passed) >= 0.99


def test_a_client_that_opens_its_producer_again_keeps_its_share() -> None:
    world = World()
    producers = [world.opens(LIMIT, client=n) for n in range(2)]
    world.floods(ONE, *producers)
    passed = 0
    for _ in range(100):
        world.runs(0.2)
        passed += producers[0].total.messages
        world.closes(producers[0])
        producers[0] = world.opens(LIMIT, client=0)
        world.floods(ONE, producers[0])
    assert passed == pytest.approx(100 * 0.2 * RATE / 2, rel=0.1)


@pytest.mark.parametrize("closes", [False, True])
def test_a_client_alone_under_a_limit_waits_only_for_the_meter(closes: bool) -> None:
    world = World()
    producer = world.opens(LIMIT, client=NEIGHBOUR)
    passed = 0
    for _ in range(5):
        world.sends(producer, 100 * RATE)
        world.runs(101)
        assert not producer.queue
        passed += 1
        if closes:
            world.closes(producer)
            producer = world.opens(LIMIT, client=NEIGHBOUR)
    assert passed == 5


def test_time_in_which_nobody_waits_pays_debts() -> None:
    world = World()
    sender, other = world.opens(LIMIT, client=NEIGHBOUR), world.opens(LIMIT, client=VICTIM)
    world.sends(sender, 100 * RATE)
    world.sends(other)
    world.runs(200)
    world.floods(ONE, other, sender)
    before = sender.total.messages, other.total.messages
    world.runs(10)
    passed = sender.total.messages - before[0], other.total.messages - before[1]
    assert jain(passed) >= 0.99


@pytest.mark.parametrize("burst", [1, 10_000_000])
def test_frames_that_come_together_are_charged_one_by_one(burst: float) -> None:
    world = World()
    limit = size(10_000_000, burst=burst)
    producers = [world.opens(limit, client=NEIGHBOUR) for _ in range(200)]
    for _ in range(3):
        for producer in producers:
            if not producer.queue:
                world.sends(producer, 1, 5 << 20)
        world.runs(10)
    assert sum(it.total.bytes for it in producers) <= 1.2 * 30 * 10_000_000


# -- large debts -----------------------------------------------------------------------------


def in_debt(world: World, producer: Producer) -> bool:
    return world.limiter.is_in_debt(producer.account, world.now)


def test_a_limit_with_more_than_a_second_of_debt_is_in_debt() -> None:
    world = World()
    sender, other = world.opens(LIMIT), world.opens(LIMIT)
    assert not in_debt(world, other)
    world.sends(sender, 2 * RATE)
    world.sends(other)
    assert in_debt(world, other)
    world.now += LARGE_DEBT
    assert not in_debt(world, other)


def test_an_account_is_in_debt_though_its_limit_is_not() -> None:
    street = Street(20_000)
    street.plays(21)
    again = street.world.opens(LIMIT, client=NEIGHBOUR)
    other = street.world.opens(LIMIT, client="somebody else")
    assert in_debt(street.world, again)
    assert not in_debt(street.world, other)


def test_an_account_without_limits_is_never_in_debt() -> None:
    world = World()
    producer = world.opens()
    producer.account.count(1_000_000)
    assert not in_debt(world, producer)


def test_a_first_message_without_allowance_does_not_starve_others() -> None:
    """Consumers may ask for one. A neighbour opens a consumer every five seconds, for an entry of
    twenty thousand messages."""
    world = World()
    victim = world.opens(LIMIT, client=VICTIM)
    world.floods(ONE, victim)
    free = 0
    for _ in range(24):
        taker = world.opens(LIMIT, client=NEIGHBOUR)
        if not in_debt(world, taker):
            taker.account.count(20_000)
            free += 1
        world.runs(5)
        world.closes(taker)
    assert free <= 3
    assert victim.total.messages + 20_000 * free <= 1.2 * 120 * RATE
    assert victim.total.messages >= 0.4 * 120 * RATE


# -- what happens during a round -------------------------------------------------------------


def waiting(world: World, count: int) -> list[Producer]:
    producers = [world.opens(LIMIT, client=n) for n in range(count)]
    world.floods(ONE, *producers)
    world.now += 0.09
    return producers


def test_an_account_that_closes_during_a_round_gets_no_lease() -> None:
    world = World()
    producers = waiting(world, 10)
    first = None
    for grant in world.limiter.hold_round(world.now):
        if first is None:
            first = grant.account
            for producer in producers:
                if producer.account is not first:
                    world.closes(producer)
        assert grant.account is first
        grant.account.grant(grant.messages, grant.bytes)
    world.floods(ONE, world.opens(LIMIT))
    world.runs(1)
    assert world.producers[-1].total.messages == pytest.approx(RATE, rel=0.1)


def test_a_lease_is_returned_if_its_account_closes_during_the_round() -> None:
    world = World()
    waiting(world, 10)
    owners = {it.account: it for it in world.producers}
    for grant in world.limiter.hold_round(world.now):
        world.closes(owners[grant.account])
    (limit,) = world.limiter.limits()
    assert not limit.accounts
    assert not limit.granted
    assert limit.meter.available(world.now) == pytest.approx(90)


def test_an_interrupted_round_is_held_again() -> None:
    world = World()
    producers = waiting(world, 10)
    rounds = world.limiter.hold_round(world.now)
    account = next(rounds).account
    rounds.close()  # type: ignore[attr-defined]
    world.limiter.release(account, world.now)
    world.producers.remove(next(it for it in producers if it.account is account))
    before = sum(it.total.messages for it in world.producers)
    world.runs(2)
    assert sum(it.total.messages for it in world.producers) - before >= 2 * RATE


# -- memory ----------------------------------------------------------------------------------


def limited(debts: Debts) -> Limit:
    return Limit(LIMIT, Meter(RATE, RATE), debts, 0.0)


def test_a_limit_drops_the_oldest_client_beyond_its_bound() -> None:
    debts = Debts(most_of_one=3)
    limit = limited(debts)
    for client in range(5):
        debts.record(limit, client, 10)
    debts.record(limit, 2, 11)
    debts.record(limit, 5, 12)
    assert len(debts) == 3
    assert [limit.debt_of(it) for it in (2, 4, 5)] == [11, 10, 12]


def test_all_limits_together_drop_the_oldest_client_beyond_the_bound() -> None:
    debts = Debts(most=3)
    limits = [limited(debts) for _ in range(5)]
    for limit in limits:
        debts.record(limit, "client", 10)
    assert len(debts) == 3
    assert [bool(it.debtors) for it in limits] == [False, False, True, True, True]


def test_a_debt_that_the_clock_has_passed_is_dropped() -> None:
    debts = Debts()
    limit = limited(debts)
    debts.record(limit, "a", 10)
    limit.clock = 20
    debts.record(limit, "b", 30)
    assert len(debts) == 1


def test_a_forgotten_limit_leaves_no_debts() -> None:
    world = World()
    producer = world.opens(LIMIT, client=NEIGHBOUR)
    world.sends(producer, 1_000_000)
    world.closes(producer)
    assert len(world.limiter._debts) == 1
    world.runs(1001)
    world.opens(messages(1, key="other"))
    assert len(world.limiter._debts) == 0
