"""No response that clients get names a broker."""

from __future__ import annotations

import struct

import pytest

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import (
    DESCRIBE_QUORUM,
    EMPTIED,
    FIND_COORDINATOR,
    METADATA,
    OTHERS,
    REWRITTEN,
    Node,
    emptied,
    rewritten,
)
from gateway.wire.kafka.schema import Api, Field, api, apis
from gateway.wire.kafka.walk import plan, unsigned
from tests.apache_kafka.encoding import body
from tests.support.versions import case

OWN = "gateway.example"
ANSWERS = [
    case(it.response, version, it, version, id=f"{it.name}-{version}")
    for it in apis()
    if it.key in REWRITTEN
    for version in range(it.response.first, it.response.last + 1)
]


def _has_address(fields: tuple[Field, ...]) -> bool:
    names = {it.name for it in fields}
    return bool(names & {"Host", "Port"}) or any(_has_address(it.fields) for it in fields)


def test_each_answer_with_a_host_or_a_port_is_judged() -> None:
    """A new release that has one more fails here, until somebody has looked at it."""
    found = {it.key for it in apis() if it.is_for_clients and _has_address(it.response.fields)}
    assert found == REWRITTEN | EMPTIED.keys() | OTHERS.keys()


def _hosts(it: Api, version: int, frame: bytes) -> list[bytes]:
    found = plan(it.response, version, frozenset({"Host"})).walk(frame, 0, len(frame))
    return [frame[place.start : place.end] for place in found.places]


@pytest.mark.parametrize(("it", "version"), ANSWERS)
def test_each_broker_has_the_gateways_address(it: Api, version: int) -> None:
    own = OWN.encode()
    length = unsigned(len(own) + 1) if version >= it.response.flexible else struct.pack(">h", 15)
    for seed in range(20):
        frame = bytes(body(it.response, version, (), seed).data)
        nodes: list[Node] = []

        def advertise(node: Node, nodes: list[Node] = nodes) -> Address:
            nodes.append(node)
            return Address(OWN, 20_000 + len(nodes))

        try:
            changed = rewritten(it.response, version, frame, 0, advertise)
        except PeerError as error:
            pytest.fail(str(error))
        left = [host for host in _hosts(it, version, changed) if len(host) > 2]
        assert left == [length + own] * len(nodes)
        whole = plan(it.response, version, whole=True)
        assert whole.walk(changed, 0, len(changed)).end == len(changed)


def _coordinator(host: bytes) -> bytes:
    return bytes(2) + struct.pack(">ih", 7, len(host)) + host + struct.pack(">i", 9092)


def _own(node: Node) -> Address:
    return Address(OWN, 20_000 + node.id)


COORDINATOR = api(FIND_COORDINATOR)
QUORUM = api(DESCRIBE_QUORUM)


def test_a_node_keeps_its_id_and_gets_its_own_port() -> None:
    assert COORDINATOR is not None
    changed = rewritten(COORDINATOR.response, 0, _coordinator(b"broker-7.internal"), 0, _own)
    expected = bytes(2) + struct.pack(">ih", 7, 15) + OWN.encode() + struct.pack(">i", 20_007)
    assert changed == expected


def test_a_node_without_a_host_stays_as_it_is() -> None:
    assert COORDINATOR is not None
    frame = _coordinator(b"")
    assert rewritten(COORDINATOR.response, 0, frame, 0, _own) == frame


@pytest.mark.parametrize("host", [b"x" * 256, "bröker".encode()])
def test_a_host_that_cannot_be_one_is_a_violation(host: bytes) -> None:
    assert COORDINATOR is not None
    with pytest.raises(PeerError, match="a host"):
        rewritten(COORDINATOR.response, 0, _coordinator(host), 0, _own)


def test_listeners_of_controllers_are_empty() -> None:
    assert QUORUM is not None
    version = QUORUM.response.last
    for seed in range(20):
        frame = bytes(body(QUORUM.response, version, (), seed).data)
        changed = emptied(QUORUM.response, version, frame, 0, EMPTIED[DESCRIBE_QUORUM])
        assert not _hosts(QUORUM, version, changed)


def test_what_stands_behind_the_brokers_is_not_read() -> None:
    """Metadata of many topics costs no more than its brokers."""
    found = api(METADATA)
    assert found is not None
    head = bytes(body(found.response, 1, (), 5).data)
    brokers = plan(found.response, 1, frozenset({"Port"})).walk(head, 0, len(head)).end
    torn = head[: brokers + 2]
    assert rewritten(found.response, 1, torn, 0, _own)
