"""Topics that are terminated while producers send to them."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.programs import Program

from .brokers.standalone import Standalone
from .clients import fresh_topic
from .configurations import Configuration, ReachConfigured
from .fixtures import Route

pytestmark = pytest.mark.timing

WHILE_SENDING = 0.3


@pytest.fixture
def route(pulsar: Standalone, reach_configured: ReachConfigured) -> Route:
    return reach_configured(pulsar)


@pytest.fixture
def program(program: Program, configuration: Configuration) -> Program:
    """Return the program with the token of its configuration."""
    return replace(program, token=configuration.token)


def test_a_sending_producer_is_told_that_its_topic_is_terminated(
    program: Program, pulsar: Standalone, route: Route, logs: Path
) -> None:
    """Mostly one message is unanswered then, and fails for this reason."""
    topic = fresh_topic()
    with program.producing(route.url, topic, 0, logs / "p.log", serial=True) as producer:
        producer.await_ready()
        time.sleep(WHILE_SENDING)
        pulsar.admin.terminate(topic)
        sent = producer.sent()
    assert sent.acknowledged == set(range(len(sent.acknowledged)))
    assert sent.errors
    assert "terminated" in sent.errors[0].lower()
