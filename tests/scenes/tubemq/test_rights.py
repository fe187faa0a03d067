"""What clients may not do, or not so fast."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import ClientError, Tube, group, produce, pull
from tests.real.clients import wait_until
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import total, totals
from tests.scenes.tubemq.conftest import PATIENCE_S, RATE, Route

COUNT = 100
SECONDS = 2


def test_to_a_denied_topic_nobody_sends_and_from_it_nobody_receives(
    tubemq: TubeMQ, route: Route, tube: Tube
) -> None:
    """A consumer waits for partitions until it is ended."""

    def is_denied() -> bool:
        told = route.gateway.ask("metrics")[1]
        return total(told, "gateway_access_denied_total", rule="secret", right="consume") > 0

    assert produce(tube, tubemq.master, route.denied, COUNT) == (COUNT, [])
    with pytest.raises(ClientError, match="Publish topic failure"):
        produce(tube, route.address, route.denied, 1)
    with tube.at_work("pull", route.address, route.denied, group(), COUNT) as printed:
        wait_until(is_denied, PATIENCE_S)
    assert printed == []
    assert route.passed(route.denied) == 0


def test_above_a_limit_messages_wait_and_none_is_lost(route: Route, tube: Tube) -> None:
    count, began = RATE * SECONDS, time.monotonic()
    assert produce(tube, route.address, route.limited, count) == (count, [])
    took = time.monotonic() - began
    assert RATE * took * 1.01 + 20 >= count
    received = pull(tube, route.address, route.limited, group(), count)
    assert sorted(received) == list(range(count))


def test_who_signs_sends_and_receives_and_who_has_no_right_or_signs_wrongly_does_not(
    tubemq: TubeMQ, guarded: Gateway, topic: str
) -> None:
    """Bob is known, and has no right where access is closed."""
    address = f"{HOST}:{guarded.port}"
    alice, eve = (Tube(tubemq.classpath, "alice", it) for it in ("wonder land", "wonderland"))
    bob = Tube(tubemq.classpath, "bob", "builder")
    assert produce(alice, address, topic, COUNT) == (COUNT, [])
    with ThreadPoolExecutor(3) as pool:
        receiving = pool.submit(pull, alice, address, topic, group(), COUNT)
        of_bob, of_eve = (pool.submit(produce, it, address, topic, 1) for it in (bob, eve))
        with pytest.raises(ClientError, match="Publish topic failure"):
            of_bob.result()
        with pytest.raises(ClientError, match="name or signature not accepted"):
            of_eve.result()
        assert sorted(receiving.result()) == list(range(COUNT))
    found = totals(guarded.ask("metrics")[1], "gateway_authentications_total", "method", "outcome")
    assert min(found["signature", "accepted"], found["signature", "refused"]) > 0
