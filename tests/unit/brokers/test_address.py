from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.brokers.address import parse_address, parse_service_url, parse_url
from gateway.errors import ConfigurationError
from gateway.wire.contract import Address


@pytest.mark.parametrize(
    ("text", "tls", "addresses"),
    [
        ("pulsar://broker.example:7000", False, [("broker.example", 7000)]),
        ("pulsar://broker.example", False, [("broker.example", 6650)]),
        ("pulsar+ssl://broker.example", True, [("broker.example", 6651)]),
        ("PULSAR+SSL://Broker.Example/", True, [("broker.example", 6651)]),
        ("pulsar://a,b:1,a:6650", False, [("a", 6650), ("b", 1)]),
        ("pulsar://[2001:DB8::1]:7000,[::1]", False, [("2001:db8::1", 7000), ("::1", 6650)]),
        ("pulsar://10.0.0.1:65535", False, [("10.0.0.1", 65535)]),
        ("pulsar://my_broker.svc.cluster.local.", False, [("my_broker.svc.cluster.local.", 6650)]),
    ],
)
def test_a_service_url_is_read(text: str, tls: bool, addresses: list[tuple[str, int]]) -> None:
    assert parse_service_url(text) == (tls, tuple(Address(*address) for address in addresses))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("broker:6650", "must begin with pulsar://"),
        ("http://broker:8080", "must begin with pulsar://"),
        ("", "must begin with pulsar://"),
        ("pulsar://", "a host name is missing"),
        ("pulsar://a,,b", "a host name is missing"),
        ("pulsar://a:0", "port 0 is not between"),
        ("pulsar://a:65536", "port 65536 is not between"),
        ("pulsar://a:port", "is not host, host:port"),
        ("pulsar://a:6650/path", "is not host, host:port"),
        ("pulsar://::1:6650", "is not host, host:port"),
        ("pulsar://[::1", "is not host, host:port"),
        ("pulsar://[broker]:6650", "is wrong"),
        ("pulsar://-a:6650", "is not a host name"),
        ("pulsar://a..b:6650", "is not a host name"),
        (f"pulsar://{'a' * 64}:6650", "is not a host name"),
        (f"pulsar://{'.'.join(['abc'] * 64)}:6650", "is not a host name"),
        ("pulsar://10.0.0.256:6650", "is wrong"),
        ("pulsar://127.1:6650", "is wrong"),
    ],
)
def test_a_wrong_service_url_is_explained(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as failure:
        parse_service_url(text)
    assert "Write for example pulsar://" in str(failure.value)


def test_a_password_in_a_service_url_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="do not belong here") as failure:
        parse_service_url("pulsar://admin:hunter2@broker:6650")
    assert "hunter2" not in str(failure.value)


def test_a_brokers_url_is_read() -> None:
    assert parse_url("pulsar://broker-0.svc:6650") == (False, Address("broker-0.svc", 6650))
    assert parse_url("pulsar+ssl://[fd00::1]:6651") == (True, Address("fd00::1", 6651))


@pytest.mark.parametrize(
    "text", ["", "x", "pulsar://", "pulsar://a,b", "http://a:1", "pulsar://a:b"]
)
def test_what_is_not_the_url_of_one_broker_is_none(text: str) -> None:
    assert parse_url(text) is None


@given(st.text(max_size=80))
def test_any_text_is_an_answer_or_none(text: str) -> None:
    parse_url(text)
    parse_url("pulsar://" + text)


@given(st.ip_addresses(), st.integers(1, 65535))
def test_an_ip_address_survives_a_round_trip(ip: object, port: int) -> None:
    address = Address(str(ip), port)
    assert parse_address(str(address)) == address
