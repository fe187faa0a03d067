"""Servers and the gateway go and come while a client sends: nothing is missing that was taken.

A producer in Java fails at once as long as a server is away, and goes through its messages
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Produced, Tube, group, produce, pull
from tests.scenes.tubemq.conftest import Route

COUNT, BEFORE = 3_000, 200
"""Messages, and how many of them pass before something happens."""


def test_a_gateway_that_stops_loses_nothing_and_stores_nothing_that_it_has_not_confirmed(
    route: Route, tube: Tube, topic: str
) -> None:
    """It takes no more requests, and waits for the replies to earlier ones."""

    def happens() -> None:
        route.gateway.stop()
        route.gateway.start()

    produced = _sent_while(happens, route, tube, topic)
    received = pull(tube, route.address, topic, group(), produced.sent)
    assert sorted(received) == [it for it in range(COUNT) if it not in produced.missing]


def test_a_gateway_that_is_killed_loses_nothing_that_it_has_confirmed(
    route: Route, tube: Tube, topic: str
) -> None:
    def happens() -> None:
        route.gateway.kill()
        route.gateway.start()

    _assert_kept(_sent_while(happens, route, tube, topic), route, tube, topic)


def test_a_broker_that_starts_again_loses_nothing_that_it_has_taken(
    tubemq: TubeMQ, route: Route, tube: Tube, topic: str
) -> None:
    def happens() -> None:
        tubemq.stop_broker(1)
        tubemq.start_broker(1)

    _assert_kept(_sent_while(happens, route, tube, topic), route, tube, topic)


def _sent_while(happens: Callable[[], None], route: Route, tube: Tube, topic: str) -> Produced:
    """Return what came of messages during which something happens, once some have passed."""
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(produce, tube, route.address, topic, COUNT)
        route.await_passed(topic, BEFORE)
        happens()
        produced = sending.result()
    assert produced.sent >= BEFORE
    return produced


def _assert_kept(produced: Produced, route: Route, tube: Tube, topic: str) -> None:
    """Assert that a new group receives as many messages as were confirmed. One more may have been
    stored, whose confirmation was lost."""
    received = pull(tube, route.address, topic, group(), produced.sent)
    assert len(set(received)) >= produced.sent
