"""Three real masters, of which the active one fails: clients have the gateway alone, and go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apache_kafka.gateways import TAP, Tap
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, group, produce, pull
from tests.apache_tubemq.gateways import in_front_of
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import StartGateway, or_skip

pytestmark = pytest.mark.real

TOPIC = "t0"
COUNT = 200


@pytest.fixture
def broker(artifacts: Artifacts, say: Say) -> Iterator[TubeMQ]:
    """Three masters and two brokers."""
    folder = artifacts.directory("tubemq-failover")
    made = or_skip(lambda say: TubeMQ(folder, say, topics=[TOPIC], masters=3), say)
    made.start()
    yield made
    made.stop()


def test_clients_go_on_with_another_master_and_never_hear_of_one_that_stands_by(
    broker: TubeMQ, gateway: StartGateway
) -> None:
    """A consumer that was there before gets what is sent after."""
    plan = in_front_of(broker, host=TAP)
    started = gateway(broker, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    tube, its = Tube(broker.classpath), group()
    before = broker.active
    with ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(pull, tube, address, TOPIC, its, 2 * COUNT)
        assert produce(tube, address, TOPIC, COUNT) == (COUNT, [])
        time.sleep(3)  # the group has its partitions
        broker.kill_master()
        assert broker.active != before
        assert produce(tube, address, TOPIC, COUNT) == (COUNT, [])
        received = receiving.result()
    tap.close()
    assert len(received) >= 2 * COUNT
    assert set(received) == set(range(COUNT))
    assert b"StandbyException" not in tap.told
    assert [it for it in broker.traces if it.encode() in tap.told] == []
