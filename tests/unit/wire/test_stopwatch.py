"""The durations of one connection's sends and first messages."""

from __future__ import annotations

import random

import pytest

from gateway.telemetry.latency import SlowSends, TenantLatencies
from gateway.wire.account import Account, Action
from gateway.wire.stopwatch import (
    CONSUMERS,
    FARTHEST,
    PACE,
    PRODUCERS,
    UNDER_WAY,
    Sampler,
    Stopwatch,
)
from tests.support.durations import durations


class Client:
    """One connection with a clock of its own, whose chunks take no time in the gateway."""

    def __init__(self, stopwatch: Stopwatch | None = None) -> None:
        self.stopwatch = stopwatch or Stopwatch(random.Random(1).randrange)
        self.latencies = TenantLatencies(SlowSends(lambda: 0.0))
        self.now = 0.0

    def opens(self) -> Account:
        account = Account(Action.PRODUCE)
        self.stopwatch.opened(account, self.latencies)
        return account

    def subscribes(self) -> Account:
        account = Account(Action.CONSUME)
        self.stopwatch.subscribed(account, lambda: self.latencies, self.now)
        return account

    def sends(self, account: Account, frames: int = 1, *, messages: int = 1) -> None:
        self.stopwatch.begin()
        for _ in range(frames):
            account.count(messages)
        self.stopwatch.moved(self.now, self.now, 1)

    def gets(self, account: Account, receipts: int = 1) -> None:
        account.receipts += receipts
        self.stopwatch.delivered(self.now)

    def hears(self, account: Account) -> None:
        account.count(1)
        self.stopwatch.delivered(self.now)


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_send_lasts_until_its_receipt(client: Client) -> None:
    producer = client.opens()
    client.sends(producer)
    client.now = 0.2
    client.gets(producer)
    assert durations(client.latencies.send) == {0.25: 1}
    assert client.latencies.send.seconds == pytest.approx(0.2)


def test_a_batch_is_one_send(client: Client) -> None:
    producer = client.opens()
    client.sends(producer, messages=1000)
    client.gets(producer)
    assert durations(client.latencies.send) == {0.0001: 1}


def test_a_frame_of_a_chunk_stands_for_all(client: Client) -> None:
    producer = client.opens()
    client.sends(producer, 10)
    client.now = 2.0
    client.gets(producer, 10)
    assert durations(client.latencies.send) == {2.5: 10}


def test_it_is_any_of_them() -> None:
    """Receipts come at times 0 to 9: each frame is drawn as often as another."""
    numbers, times = random.Random(1), [0] * 10
    for _ in range(2000):
        client = Client(Stopwatch(numbers.randrange))
        producer = client.opens()
        client.sends(producer, 10)
        for at in range(10):
            client.now = at
            client.gets(producer)
        times[round(client.latencies.send.seconds / 10)] += 1
    assert all(150 < number < 250 for number in times)  # 200 each on average


def test_it_stands_for_the_chunks_that_are_skipped_too(client: Client) -> None:
    producer = client.opens()
    client.stopwatch.begin()
    producer.count(1)
    client.stopwatch.moved(0.0, 0.0, 50)
    client.gets(producer)
    assert durations(client.latencies.send) == {0.0001: 50}
    assert durations(client.latencies.own) == {0.0001: 50}


def test_receipts_answer_the_oldest_frames(client: Client) -> None:
    producer = client.opens()
    client.sends(producer)
    client.now = 1.0
    client.sends(producer)
    client.gets(producer)
    client.now = 1.2
    client.gets(producer)
    assert durations(client.latencies.send) == {1.0: 1, 0.25: 1}


def test_one_receipt_of_many_may_end_several_chunks(client: Client) -> None:
    producer = client.opens()
    for _ in range(3):
        client.sends(producer)
        client.now += 1
    client.gets(producer, 3)
    assert durations(client.latencies.send) == {5.0: 1, 2.5: 1, 1.0: 1}


def test_frames_without_a_receipt_are_not_counted(client: Client) -> None:
    producer = client.opens()
    client.sends(producer)
    client.stopwatch.closed(producer)
    client.gets(producer)
    assert not durations(client.latencies.send)


def test_receipts_for_nothing_harm_nothing(client: Client) -> None:
    """A broker that sends too many of them makes the next sends look as if they needed none."""
    producer = client.opens()
    client.gets(producer, 3)
    client.sends(producer, 2)
    client.gets(producer, 2)
    assert not durations(client.latencies.send)


def test_a_send_that_gets_no_receipt_lasts_until_it_is_on_its_way(client: Client) -> None:
    """As of Kafka's acks=0: it is settled when it passes."""
    producer = client.opens()
    client.stopwatch.begin()
    producer.count(1)
    producer.receipts += 1
    client.stopwatch.moved(0.0, 0.2, 1)
    assert durations(client.latencies.own) == {0.25: 1}
    assert not durations(client.latencies.send)
    assert client.stopwatch.under_way == 0


def test_only_frames_from_then_on_are_timed(client: Client) -> None:
    producer = Account(Action.PRODUCE)
    producer.count(1)
    client.stopwatch.opened(producer, client.latencies)
    client.gets(producer)
    assert not durations(client.latencies.send)
    client.sends(producer)
    client.gets(producer)
    assert durations(client.latencies.send) == {0.0001: 1}


def test_frames_under_way_are_bounded(client: Client) -> None:
    producer = client.opens()
    for _ in range(UNDER_WAY + 100):
        client.sends(producer)
    assert client.stopwatch.under_way == UNDER_WAY
    client.gets(producer, UNDER_WAY + 100)
    assert client.stopwatch.under_way == 0
    client.sends(producer)
    assert client.stopwatch.under_way == 1


def test_the_gateways_own_part_ends_when_a_frame_is_on_its_way(client: Client) -> None:
    producer = client.opens()
    client.stopwatch.begin()
    producer.count(1)
    client.stopwatch.moved(0.0, 0.3, 1)
    assert durations(client.latencies.own) == {0.5: 1}


def test_chunks_to_the_client_are_awaited_while_something_is_timed(client: Client) -> None:
    calls: list[float] = []

    class Plane:
        def listen(self) -> None:
            calls.append(client.now)

    client.stopwatch.watched = Plane()
    producer = client.opens()
    assert not client.stopwatch.delivered(0.0)
    assert not calls
    client.sends(producer, 2)
    assert calls
    assert client.stopwatch.delivered(0.0)
    producer.receipts += 2
    assert not client.stopwatch.delivered(0.0)
    client.subscribes()
    assert len(calls) == 2
    assert client.stopwatch.delivered(0.0)


# -- chunks that are timed -----------------------------------------------------------------------


def sampled(sampler: Sampler, rate: float, seconds: float) -> list[int]:
    """Return how many chunks each timed one stands for, if so many come in a second."""
    found = []
    for number in range(int(rate * seconds)):
        if sampler.skips:
            sampler.skips -= 1
        else:
            found.append(sampler.sample(1000 + number / rate))
    return found


def test_every_chunk_is_timed_where_few_come() -> None:
    assert sampled(Sampler(), 0.5 / PACE, 10) == [1] * int(5 / PACE)


@pytest.mark.parametrize("rate", [5 / PACE, 50 / PACE])
def test_of_many_chunks_one_is_timed_in_each_pace(rate: float) -> None:
    found = sampled(Sampler(random.Random(1).randrange), rate, 20)
    assert 0.7 < len(found) * PACE / 20 < 1.6
    assert sum(found) == pytest.approx(rate * 20, rel=0.01)


def test_timed_chunks_are_drawn_at_random() -> None:
    assert len(set(sampled(Sampler(random.Random(1).randrange), 10 / PACE, 5))) > 10


def test_a_process_that_falls_silent_is_timed_soon() -> None:
    sampler = Sampler(random.Random(1).randrange)
    sampled(sampler, 1000 / PACE, 1)
    assert sampler.skips < 2 * FARTHEST


# -- producers and consumers ---------------------------------------------------------------------


def test_of_many_producers_some_are_timed() -> None:
    client = Client(Stopwatch(random.Random(1).randrange))
    producers = [client.opens() for _ in range(100)]
    for producer in producers:
        client.sends(producer)
        client.gets(producer)
    assert sum(client.latencies.send.counts) == PRODUCERS


def test_each_of_many_producers_is_as_likely_to_be_timed() -> None:
    numbers, timed = random.Random(1), [0] * 20
    for _ in range(2000):
        client = Client(Stopwatch(numbers.randrange))
        producers = [client.opens() for _ in timed]
        for number, producer in enumerate(producers):
            before = sum(client.latencies.send.counts)
            client.sends(producer)
            client.gets(producer)
            timed[number] += sum(client.latencies.send.counts) - before
    assert all(300 < times < 500 for times in timed)  # 400 each on average


def test_the_first_message_of_a_consumer_is_timed_once(client: Client) -> None:
    consumer = client.subscribes()
    client.now = 3.0
    client.hears(consumer)
    client.now = 7.0
    client.hears(consumer)
    assert durations(client.latencies.first_message) == {5.0: 1}


def test_some_consumers_of_quiet_topics_are_timed(client: Client) -> None:
    consumers = [client.subscribes() for _ in range(CONSUMERS + 5)]
    for consumer in consumers:
        client.hears(consumer)
    assert sum(client.latencies.first_message.counts) == CONSUMERS


def test_a_consumer_that_closes_makes_room(client: Client) -> None:
    for _ in range(CONSUMERS):
        client.stopwatch.closed(client.subscribes())
    client.hears(client.subscribes())
    assert sum(client.latencies.first_message.counts) == 1
