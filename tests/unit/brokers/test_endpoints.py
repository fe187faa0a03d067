"""Addresses for brokers that have ids, and which of these a client has reached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.brokers.endpoints import NameEndpoints, PortEndpoints
from gateway.brokers.nodes import Nodes
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal

PORTS = PortEndpoints("gateway.example", 9092, (7, 1, 2), 9101)
NAMES = NameEndpoints("Broker-{n}.Example", "gateway.example", 9093)


def anywhere(port: int) -> Address:
    return Address("10.0.0.1", port)


# -- ports -----------------------------------------------------------------------------------


def test_ports_follow_the_order_of_ids() -> None:
    found = [PORTS.of(id) for id in (7, 1, 2)]
    assert found == [Address("gateway.example", port) for port in (9101, 9102, 9103)]


def test_the_port_that_was_reached_says_which_broker_is_meant() -> None:
    assert [PORTS.node(anywhere(port), None) for port in (9101, 9102, 9103)] == [7, 1, 2]
    assert PORTS.node(anywhere(9092), None) is None


def test_an_id_that_is_not_declared_has_no_port() -> None:
    denial = PORTS.of(0)
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.TARGET
    assert PORTS.any == Address("gateway.example", 9092)


# -- names -----------------------------------------------------------------------------------


@given(st.integers(0, 2**31 - 1))
def test_the_name_of_each_id_leads_back_to_it(id: int) -> None:
    found = NAMES.of(id)
    assert found == Address(f"broker-{id}.example", 9093)
    assert isinstance(found, Address)
    assert NAMES.node(anywhere(9093), found.host.upper()) == id


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "gateway.example",
        "broker-.example",
        "broker-01.example",
        "broker--1.example",
        "broker-1.example.",
        "broker-1.exampl",
        "broker-1",
        ".example",
        "broker-\u0661.example",
        f"broker-{'1' * 5000}.example",
    ],
)
def test_any_other_name_means_no_broker(name: str | None) -> None:
    assert NAMES.node(anywhere(9093), name) is None


def test_a_broker_without_an_id_has_no_name() -> None:
    assert isinstance(NAMES.of(-1), Denial)


# -- where brokers are -----------------------------------------------------------------------


def test_a_broker_is_where_it_was_last_said_to_be() -> None:
    nodes = Nodes()
    nodes.learn(1, Address("a", 9092))
    nodes.learn(1, Address("b", 9092))
    assert nodes.broker(1) == Address("b", 9092)
    assert nodes.broker(2) is None


def test_the_broker_that_was_named_longest_ago_is_forgotten() -> None:
    nodes = Nodes(most=2)
    for id in (1, 2, 1, 3):
        nodes.learn(id, Address("a", id))
    assert [nodes.broker(id) is None for id in (1, 2, 3)] == [False, True, False]
