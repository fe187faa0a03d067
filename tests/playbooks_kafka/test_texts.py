"""No text of a broker's error names a broker."""

from __future__ import annotations

import pytest

from gateway.brokers.learned import LearnedHosts
from gateway.wire.kafka.plugin import PLUGIN

from .frames import ask, tell, told
from .script import KafkaServices, Play

ALTER_CONFIGS, ALTER_INCREMENTALLY = 33, 44
HOST = "127.0.0.77"


@pytest.mark.parametrize(("key", "version"), [(ALTER_CONFIGS, 2), (ALTER_INCREMENTALLY, 1)])
def test_listeners_in_the_error_of_a_changed_setting_have_no_address(
    key: int, version: int
) -> None:
    """Brokers repeat all their listeners when a change of one is wrong."""
    services = KafkaServices()
    learned = LearnedHosts(PLUGIN)
    learned.learn(HOST)
    services.clean = learned.clean  # type: ignore[method-assign]
    play = Play(services)
    play.client(ask(key, version, Resources=[], ValidateOnly=True))
    text = f"Error creating broker listeners from '[PLAINTEXT://{HOST}:19092, CONTROLLER://{HOST}:19093]'"
    response = {"ErrorCode": 42, "ErrorMessage": text, "ResourceType": 4, "ResourceName": "1"}
    shown = told(key, version, play.broker(tell(key, version, Responses=[response])))
    assert shown["Responses"][0]["ErrorMessage"] == (
        "Error creating broker listeners from '[PLAINTEXT://broker, CONTROLLER://broker]'"
    )
