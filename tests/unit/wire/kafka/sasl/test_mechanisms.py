"""Which mechanisms clients are offered."""

from __future__ import annotations

import pytest

from gateway.wire.kafka.sasl.mechanisms import METHODS, offered


@pytest.mark.parametrize(
    ("methods", "mechanisms"),
    [
        ([], ()),
        (["tls", "", "none"], ()),
        (["basic"], ("PLAIN",)),
        (["scram"], ("SCRAM-SHA-256", "SCRAM-SHA-512")),
        (["token"], ("OAUTHBEARER",)),
        (["token", "scram", "basic", "tls"], tuple(METHODS)),
    ],
)
def test_what_the_listener_verifies_is_offered(
    methods: list[str], mechanisms: tuple[str, ...]
) -> None:
    assert offered(methods) == mechanisms
