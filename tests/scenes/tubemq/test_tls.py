"""Clients with TLS and certificates, as those in Go have them, before servers with neither."""

from __future__ import annotations

from tests.apache_tubemq.certified import Site, message, register
from tests.real.metrics import totals

COUNT = 20


def test_who_has_a_certificate_sends_under_its_name(site: Site, topic: str) -> None:
    alice = site.client("alice")
    reply = site.call(alice, site.gateway.port, register(topic))
    ports = {it.split(":")[0]: int(it.rpartition(":")[2]) for it in reply.brokerInfos}
    assert set(ports) == {"1", "2"}
    assert set(ports.values()) <= {site.plan.first_port + id for id in range(4)}
    for number in range(COUNT):
        sent = site.call(alice, ports["1"], message(topic, number))
        assert (sent.success, sent.errCode) == (True, 200)
    found = totals(site.gateway.ask("metrics/topics")[1], "gateway_topic_messages_total", "topic")
    assert found == {(topic,): COUNT}
