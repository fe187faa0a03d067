"""Texts with addresses of brokers."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.tubemq.addresses import brokers, failure, partition

AT = {2: Address("gateway", 19002)}


def at(id: int, _: str) -> Address | None:
    return AT.get(id)


def test_brokers_are_named_by_id_and_address() -> None:
    told = ["1:10.0.0.5: ", "2:10.0.0.6:8125", "3:fe80::1:8126"]
    assert dict(brokers(told, tls=False)) == {
        1: Address("10.0.0.5", 8123),
        2: Address("10.0.0.6", 8125),
        3: Address("fe80::1", 8126),
    }
    assert dict(brokers(["1:h: "], tls=True)) == {1: Address("h", 8124, tls=True)}


def test_the_id_alone_says_which_address_stands_there() -> None:
    assert partition("2:gateway:19002#demo:1", at) == "2:gateway:19002#demo:1"
    assert partition("2:10.0.0.6:8125#demo:10000", at) == "2:gateway:19002#demo:10000"
    assert failure("410:2:10.0.0.6:8125#demo:1", at) == "410:2:gateway:19002#demo:1"


def test_a_broker_that_nobody_knows_stays_as_it_is() -> None:
    assert partition("7:h:1#demo:1", at) == "7:h:1#demo:1"


@pytest.mark.parametrize(
    "text", ["", "x:h:1", "1", "1:h", "1:h:x", "1::5", f"{'9' * 11}:h:1", "²:h:1"]
)
def test_what_names_no_broker_is_refused(text: str) -> None:
    with pytest.raises(PeerError):
        list(brokers([text], tls=False))


@pytest.mark.parametrize("text", ["", "2:h:1", "x#demo:1", "x:h:1#demo:1", "#demo:1"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(PeerError):
        partition(text, at)
