"""Java clients prove to the gateway who they are, which no server of TubeMQ verifies."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import ClientError, Tube, balance, produce, pull
from tests.apache_tubemq.gateways import ALICE_ALONE, in_front_of
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import totals

pytestmark = pytest.mark.real

COUNT = 100
TOPICS = [f"t{number}" for number in range(8)]
PULL, BALANCE = pull, balance
USERS = "alice:wonder land\nbob:builder\n"


@pytest.fixture
def guarded(broker: TubeMQ, gateway: StartGateway, tmp_path: Path) -> Gateway:
    """Return a gateway that knows alice and bob, of whom alice may do everything."""
    users, rules = tmp_path / "users", tmp_path / "rules.yaml"
    users.write_text(USERS)
    users.chmod(0o600)
    rules.write_text(ALICE_ALONE)
    identity = {"mode": "verify", "signature": {"users_file": str(users)}}
    return gateway(broker, in_front_of(broker, identity=identity, rules=rules, access="closed"))


def group() -> str:
    return f"g{uuid.uuid4().hex}"


def tube(broker: TubeMQ, user: str | None, password: str = "") -> Tube:
    return Tube(broker.classpath, user, password)


def receives_nothing(client: Tube, address: str, topic: str) -> None:
    """Check that neither kind of consumer receives anything. One waits for partitions for ever."""
    assert balance(client, address, topic, group(), 1, 5) == []
    with pytest.raises(ClientError, match="did not end"):
        client.run("pull", address, topic, group(), 1, seconds=8, receiving=5)


@pytest.mark.parametrize("receive", [PULL, BALANCE], ids=["server-balanced", "client-balanced"])
def test_who_signs_sends_and_receives_under_its_name(
    broker: TubeMQ,
    guarded: Gateway,
    topics: Iterator[str],
    receive: Callable[..., list[int]],
) -> None:
    alice, topic = tube(broker, "alice", "wonder land"), next(topics)
    address = f"{HOST}:{guarded.port}"
    assert produce(alice, address, topic, COUNT) == (COUNT, [])
    assert sorted(receive(alice, address, topic, group(), COUNT)) == list(range(COUNT))


def test_who_signs_with_another_password_sends_and_receives_nothing(
    broker: TubeMQ, guarded: Gateway, topics: Iterator[str]
) -> None:
    address, topic = f"{HOST}:{guarded.port}", next(topics)
    alice, eve = tube(broker, "alice", "wonder land"), tube(broker, "alice", "wonderland")
    assert produce(alice, address, topic, 3) == (3, [])
    with pytest.raises(ClientError, match="name or signature not accepted"):
        produce(eve, address, topic, 3)
    receives_nothing(eve, address, topic)
    found = totals(guarded.ask("metrics")[1], "gateway_authentications_total", "method", "outcome")
    assert found["signature", "refused"] > 0


def test_who_signs_nothing_sends_and_receives_nothing(
    broker: TubeMQ, guarded: Gateway, topics: Iterator[str]
) -> None:
    address, topic, nobody = f"{HOST}:{guarded.port}", next(topics), tube(broker, None)
    with pytest.raises(ClientError, match="a signature is needed"):
        produce(nobody, address, topic, 3)
    receives_nothing(nobody, address, topic)


def test_rules_are_about_who_has_signed(
    broker: TubeMQ, guarded: Gateway, topics: Iterator[str]
) -> None:
    """Bob is known, and has no rights: no broker has a topic for him."""
    address, topic, bob = f"{HOST}:{guarded.port}", next(topics), tube(broker, "bob", "builder")
    with pytest.raises(ClientError, match="Publish topic failure"):
        produce(bob, address, topic, 2)
    receives_nothing(bob, address, topic)


def test_a_gateway_that_starts_again_knows_its_tokens_and_consumers_again(
    broker: TubeMQ, guarded: Gateway, topics: Iterator[str]
) -> None:
    """The client goes on as if a connection had failed."""
    alice, topic = tube(broker, "alice", "wonder land"), next(topics)
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
