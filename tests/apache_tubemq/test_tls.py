"""Clients with TLS reach servers that have none, if their certificate gives them the right.

The scene of one that may do all is in `tests/scenes/tubemq`.
"""

from __future__ import annotations

import ssl

import pytest

from tests.apache_tubemq.certified import Site, message, register

pytestmark = pytest.mark.real


def test_who_has_a_certificate_of_another_name_has_no_right(site: Site, topic: str) -> None:
    bob = site.client("bob")
    reply = site.call(bob, site.gateway.port, register(topic))
    port = int(reply.brokerInfos[0].rpartition(":")[2])
    assert site.call(bob, port, message(topic, 1)).errCode == 401


def test_who_has_no_certificate_is_not_served(site: Site, topic: str) -> None:
    with pytest.raises((ConnectionError, ssl.SSLError)):
        site.call(site.anybody(), site.gateway.port, register(topic))
