"""Addresses are read into one spelling, or refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.address import Address, Scheme, parse_address, parse_url, split_urls

SCHEMES = {"mq": Scheme(7000), "mq+tls": Scheme(7001, tls=True)}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("mq://broker.example:7002", Address("broker.example", 7002)),
        ("mq://broker.example", Address("broker.example", 7000)),
        ("mq+tls://broker.example", Address("broker.example", 7001, tls=True)),
        ("MQ+TLS://Broker.Example:1/", Address("broker.example", 1, tls=True)),
        ("mq://[2001:DB8:0::1]:7002", Address("2001:db8::1", 7002)),
        ("mq://[::1]", Address("::1", 7000)),
        ("mq://10.0.0.1:65535", Address("10.0.0.1", 65535)),
        ("mq://my_broker.svc.cluster.local.", Address("my_broker.svc.cluster.local.", 7000)),
    ],
)
def test_a_url_is_read_into_one_spelling(text: str, address: Address) -> None:
    assert parse_url(text, SCHEMES) == address


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("broker:7000", "has no scheme"),
        ("", "has no scheme"),
        ("http://broker:8080", "has a scheme that is not known"),
        ("mq://", "has no host"),
        ("mq://a:0", "or port 0"),
        ("mq://a:65536", "is not an address"),
        ("mq://a:port", "is not an address"),
        ("mq://a:7000/path", "is not an address"),
        ("mq://a:7000,b:7000", "is not an address"),
        ("mq://::1:7000", "is not an address"),
        ("mq://[::1", "is not an address"),
        ("mq://[broker]:7000", "has an invalid host"),
        ("mq://[fe80::1%eth0]:7000", "has an invalid host"),
        ("mq://-a:7000", "has an invalid host"),
        ("mq://a..b:7000", "has an invalid host"),
        (f"mq://{'a' * 64}:7000", "has an invalid host"),
        (f"mq://{'.'.join(['abc'] * 64)}:7000", "has an invalid host"),
        ("mq://10.0.0.256:7000", "has an invalid host"),
        ("mq://127.1:7000", "has an invalid host"),
    ],
)
def test_a_wrong_url_is_explained(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_url(text, SCHEMES)


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="is not an address") as failure:
        parse_url("mq://admin:hunter2@broker:7000", SCHEMES)
    assert "hunter2" not in str(failure.value)


def test_an_address_without_a_port_needs_a_default() -> None:
    assert parse_address("a", 1) == Address("a", 1)
    with pytest.raises(ValueError, match="no port"):
        parse_address("a")


def test_hosts_without_a_scheme_get_the_first_one() -> None:
    assert split_urls("mq://a:1, b,http://c") == ["mq://a:1", "mq://b", "http://c"]


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for url in (text, f"mq://{text}"):
        with suppress(ValueError):
            parse_url(url, SCHEMES)


@given(st.ip_addresses(), st.integers(1, 65535))
def test_an_ip_address_survives_a_round_trip(ip: object, port: int) -> None:
    address = Address(str(ip), port)
    assert parse_address(str(address)) == address
