"""The durations of one connection's sends and first messages."""

from __future__ import annotations

import random

import pytest

from gateway.telemetry.latency import SlowSends, TenantLatencies
from gateway.wire.account import Account, Action
from gateway.wire.stopwatch import CHUNKS, CONSUMERS, PRODUCERS, SAMPLED, Stopwatch
from tests.support.durations import durations


class Client:
    """One connection with a clock of its own, whose chunks take no time in the gateway."""

    def __init__(self, stopwatch: Stopwatch | None = None) -> None:
        self.stopwatch = stopwatch or Stopwatch(random.Random(1).randrange)
        self.stopwatch.clock = lambda: self.now
        self.latencies = TenantLatencies(SlowSends(lambda: 0.0))
        self.now = 0.0

    def opens(self) -> Account:
        account = Account(Action.PRODUCE)
        self.stopwatch.opened(account, self.latencies)
        return account

    def subscribes(self) -> Account:
        account = Account(Action.CONSUME)
        self.stopwatch.subscribed(account, self.latencies, self.now)
        return account

    def sends(self, account: Account, frames: int = 1, *, messages: int = 1) -> None:
        for _ in range(frames):
            account.count(messages)
        self.stopwatch.moved(self.now)

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


def test_all_frames_of_a_chunk_are_counted(client: Client) -> None:
    producer = client.opens()
    client.sends(producer, 10)
    client.now = 2.0
    client.gets(producer, 4)
    client.now = 4.0
    client.gets(producer, 6)
    assert durations(client.latencies.send) == {2.5: 4, 5.0: 6}


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


def test_a_receipt_for_nothing_is_not_counted(client: Client) -> None:
    """A broker that sends too many receipts loses times, and harms nothing else."""
    producer = client.opens()
    client.gets(producer, 3)
    client.sends(producer)
    client.gets(producer)
    assert not durations(client.latencies.send)


def test_a_producer_that_is_opened_again_begins_anew(client: Client) -> None:
    producer = client.opens()
    client.sends(producer, 5)
    client.stopwatch.closed(producer)
    client.stopwatch.opened(producer, client.latencies)
    client.now = 1.0
    client.sends(producer)
    client.gets(producer)
    assert durations(client.latencies.send) == {0.0001: 1}


def test_chunks_under_way_are_bounded(client: Client) -> None:
    producer = client.opens()
    for _ in range(CHUNKS + 100):
        client.sends(producer)
        client.now += 0.01
    client.gets(producer, CHUNKS + 100)
    assert sum(client.latencies.send.counts) == CHUNKS + 100
    assert client.stopwatch.under_way == 0


def test_the_gateways_own_part_ends_when_a_frame_is_on_its_way() -> None:
    client = Client(Stopwatch(lambda _: 0))
    producer = client.opens()
    producer.count(1)
    client.now = 0.3
    client.stopwatch.moved(0.0)
    assert durations(client.latencies.own) == {0.5: 1}


def test_the_gateways_own_part_is_measured_of_some_chunks(client: Client) -> None:
    producer = client.opens()
    for _ in range(100 * SAMPLED):
        client.sends(producer)
    assert 80 < sum(client.latencies.own.counts) < 120


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
