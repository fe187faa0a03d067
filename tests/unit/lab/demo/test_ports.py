"""The demonstration's ports."""

from __future__ import annotations

import socket

import pytest

from gateway.errors import ConfigurationError
from gateway.lab.demo.plan import KAFKA
from gateway.lab.demo.ports import (
    HOST,
    VARIABLE,
    Ports,
    read_ports,
    require_free,
    require_reachable,
)
from gateway.wire.address import Address


def test_the_default_ports_are_those_of_the_docs() -> None:
    assert read_ports({}) == read_ports({VARIABLE: ""}) == Ports(6650, 8080, 8090, 16680)


def test_other_ports_may_be_set() -> None:
    assert (
        read_ports({VARIABLE: "1,2,3,4"})
        == read_ports({VARIABLE: " 1, 2,3, 4 "})
        == Ports(1, 2, 3, 4)
    )


def test_kafka_s_brokers_have_the_ports_behind_that_of_clients() -> None:
    assert read_ports({}, KAFKA) == Ports(9092, 8080, 8090, 16680)
    assert read_ports({VARIABLE: "1,4,5,6"}, KAFKA).kafka_brokers == (2, 3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,3,5,6", "the 2 ports behind 1 are for brokers"),
        ("65534,1,2,3", "65534 has no 2 ports behind it"),
    ],
)
def test_ports_that_leave_kafka_s_brokers_none_are_explained(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        read_ports({VARIABLE: text}, KAFKA)
    read_ports({VARIABLE: text})  # right for Pulsar


@pytest.mark.parametrize(
    "text", ["1", "1,2,3", "1,2,3,4,5", "1,2,3,3", "0,1,2,3", "1,2,3,65536", "a,b,c,d"]
)
def test_wrong_ports_are_explained(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"four different ports.*6650,8080,8090,16680"):
        read_ports({VARIABLE: text})


def test_a_port_in_use_is_named_with_a_remedy() -> None:
    with socket.create_server((HOST, 0)) as taken, socket.create_server((HOST, 0)) as other:
        port, free = taken.getsockname()[1], other.getsockname()[1]
        other.close()
        with pytest.raises(ConfigurationError) as raised:
            require_free((free, port))
    assert str(raised.value).startswith(
        f"cannot listen on {HOST}:{port}: address already in use; end"
    )
    assert VARIABLE in str(raised.value)
    require_free((port,))


def test_an_unknown_host_is_reported_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", fail)
    with pytest.raises(ConfigurationError, match="nowhere:6650: name or service not known"):
        require_reachable((Address("nowhere", 6650),), seconds=1.0)


def test_one_broker_that_accepts_is_enough() -> None:
    with socket.create_server((HOST, 0)) as broker, socket.create_server((HOST, 0)) as gone:
        up, down = (Address(HOST, it.getsockname()[1]) for it in (broker, gone))
        gone.close()
        require_reachable((down, up), seconds=1.0)
        with pytest.raises(ConfigurationError, match=rf"{down}: connection refused.*running\?"):
            require_reachable((down,), seconds=1.0)
