"""Clients in Java send and receive."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, balance, group, produce, pull
from tests.real.metrics import totals
from tests.scenes.tubemq.conftest import Route

COUNT = 200
LARGE, LARGE_COUNT = 300_000, 20
MANY = 6_000


def test_what_is_sent_is_received_once_by_both_consumers_counted_and_names_no_server(
    tubemq: TubeMQ, route: Route, tube: Tube, topic: str
) -> None:
    """The master spreads the partitions of one consumer's group, and the other takes its own."""
    assert produce(tube, route.address, topic, COUNT) == (COUNT, [])
    for receive in (pull, balance):
        received = receive(tube, route.address, topic, group(), COUNT)
        assert sorted(received) == list(range(COUNT))
    assert len(route.tap.told) > COUNT
    assert [it for it in tubemq.traces if it.encode() in route.tap.told] == []
    told = route.gateway.ask("metrics/topics")[1]
    found = totals(told, "gateway_topic_messages_total", "topic", "direction")
    assert (found[topic, "to_broker"], found[topic, "to_client"]) == (COUNT, 2 * COUNT)


def test_large_messages_pass_in_their_many_blocks(route: Route, tube: Tube, topic: str) -> None:
    assert produce(tube, route.address, topic, LARGE_COUNT, LARGE) == (LARGE_COUNT, [])
    received = pull(tube, route.address, topic, group(), LARGE_COUNT)
    assert sorted(received) == list(range(LARGE_COUNT))


def test_a_group_whose_members_come_and_go_receives_all(
    route: Route, tube: Tube, topic: str
) -> None:
    """The master spreads the partitions anew while messages are sent: a second member comes, the
    first one leaves, and a third takes the rest."""
    its, address = group(), route.address
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(pull, tube, address, topic, its, MANY // 3)
        sending = pool.submit(produce, tube, address, topic, MANY)
        route.await_passed(topic, COUNT)
        second = pool.submit(pull, tube, address, topic, its, MANY // 3)
        assert sending.result() == (MANY, [])
        received = [*first.result(), *second.result()]
    assert min(len(first.result()), len(second.result())) >= MANY // 3
    if left := MANY - len(set(received)):
        received += pull(tube, address, topic, its, left)
    assert set(received) == set(range(MANY))
