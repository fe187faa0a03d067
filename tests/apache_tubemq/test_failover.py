"""Three real masters, of which the active one fails: clients have the gateway alone, and go on."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apache_kafka.gateways import TAP, Tap
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, produce, pull
from tests.apache_tubemq.gateways import in_front_of
from tests.real.fixtures import StartGateway

pytestmark = pytest.mark.real

TOPIC = "t0"
TOPICS = [TOPIC]
COUNT = 200
MASTERS = 3


def test_clients_go_on_with_another_master_and_never_hear_of_one_that_stands_by(
    broker: TubeMQ, gateway: StartGateway
) -> None:
    """A consumer that was there before gets what is sent after."""
    plan = in_front_of(broker, host=TAP)
    started = gateway(broker, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    tube, its = Tube(broker.classpath), f"g{uuid.uuid4().hex}"
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
