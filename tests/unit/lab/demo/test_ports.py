"""The demonstration's ports."""

from __future__ import annotations

import socket

import pytest

from gateway.errors import ConfigurationError
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
