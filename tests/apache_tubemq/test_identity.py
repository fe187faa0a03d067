"""Java clients prove to the gateway who they are, which no server of TubeMQ verifies."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import ClientError, Tube, balance, group, produce, pull
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import totals

pytestmark = pytest.mark.real

COUNT = 100


def tube(tubemq: TubeMQ, user: str | None, password: str = "") -> Tube:
    return Tube(tubemq.classpath, user, password)


def receives_nothing(client: Tube, address: str, topic: str) -> None:
    """Check that neither kind of consumer receives anything. One waits for partitions for ever."""
    assert balance(client, address, topic, group(), 1, 5) == []
    with pytest.raises(ClientError, match="did not end"):
        client.run("pull", address, topic, group(), 1, seconds=8, receiving=5)


def test_who_signs_and_chooses_its_partitions_receives_under_its_name(
    tubemq: TubeMQ, guarded: Gateway, topic: str
) -> None:
    """That of the other kind of consumer is in `tests/scenes/tubemq`."""
    alice, address = tube(tubemq, "alice", "wonder land"), f"{HOST}:{guarded.port}"
    assert produce(alice, address, topic, COUNT) == (COUNT, [])
    assert sorted(balance(alice, address, topic, group(), COUNT)) == list(range(COUNT))


def test_who_signs_with_another_password_sends_and_receives_nothing(
    tubemq: TubeMQ, guarded: Gateway, topic: str
) -> None:
    address = f"{HOST}:{guarded.port}"
    alice, eve = tube(tubemq, "alice", "wonder land"), tube(tubemq, "alice", "wonderland")
    assert produce(alice, address, topic, 3) == (3, [])
    with pytest.raises(ClientError, match="name or signature not accepted"):
        produce(eve, address, topic, 3)
    receives_nothing(eve, address, topic)
    found = totals(guarded.ask("metrics")[1], "gateway_authentications_total", "method", "outcome")
    assert found["signature", "refused"] > 0


def test_who_signs_nothing_sends_and_receives_nothing(
    tubemq: TubeMQ, guarded: Gateway, topic: str
) -> None:
    address, nobody = f"{HOST}:{guarded.port}", tube(tubemq, None)
    with pytest.raises(ClientError, match="a signature is needed"):
        produce(nobody, address, topic, 3)
    receives_nothing(nobody, address, topic)


def test_rules_are_about_who_has_signed(tubemq: TubeMQ, guarded: Gateway, topic: str) -> None:
    """Bob is known, and has no rights: no broker has a topic for him."""
    address, bob = f"{HOST}:{guarded.port}", tube(tubemq, "bob", "builder")
    with pytest.raises(ClientError, match="Publish topic failure"):
        produce(bob, address, topic, 2)
    receives_nothing(bob, address, topic)


def test_a_gateway_that_starts_again_knows_its_tokens_and_consumers_again(
    tubemq: TubeMQ, guarded: Gateway, topic: str
) -> None:
    """The client goes on as if a connection had failed."""
    alice = tube(tubemq, "alice", "wonder land")
    address, its = f"{HOST}:{guarded.port}", group()
    with ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(pull, alice, address, topic, its, 2 * COUNT)
        assert produce(alice, address, topic, COUNT) == (COUNT, [])
        time.sleep(3)
        guarded.stop()
        guarded.start()
        assert produce(alice, address, topic, COUNT).sent == COUNT
        received = receiving.result()
    assert len(received) >= 2 * COUNT
    assert set(received) == set(range(COUNT))
