"""Each API of Kafka has its rights, which `tests.docs.states` writes into the page."""

from __future__ import annotations

from gateway.wire.kafka.rights import NEEDS
from gateway.wire.kafka.schema import apis
from gateway.wire.kafka.versions import is_offered


def test_each_api_that_clients_may_ask_has_a_right_or_is_known_to_need_none() -> None:
    assert NEEDS.keys() == {it.key for it in apis() if is_offered(it.key)}
