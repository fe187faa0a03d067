"""No response that clients get names a broker."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import DESCRIBE_QUORUM, FIND_COORDINATOR, Node
from gateway.wire.kafka.fields import TO_CLIENT, Act, rules_of
from gateway.wire.kafka.rewriting import rewritten
from gateway.wire.kafka.schema import Api, Schema, api, apis
from gateway.wire.kafka.substitutes import Original
from gateway.wire.kafka.versions import is_offered
from gateway.wire.kafka.walk import plan, unsigned
from gateway.wire.slices import finished
from tests.apache_kafka.encoding import body
from tests.support.versions import case

OWN = "gateway.example"
ANSWERS = [
    case(it.response, version, it, version, id=f"{it.name}-{version}")
    for it in apis()
    if is_offered(it.key)
    if any(rule.act is Act.ADDRESS for rule in rules_of(it.key, TO_CLIENT).values())
    for version in range(it.response.first, it.response.last + 1)
]


Advertise = Callable[[Node], Address]


class _View:
    """Sees all topics, and texts as they are."""

    def __init__(self, advertise: Advertise) -> None:
        self.advertise = advertise

    def hides(self, topic: bytes, *, by_id: bool) -> bool:
        return False

    def knows(self, id: bytes) -> bool:
        return True

    def original(self, topic: bytes) -> Original | None:
        return None

    def clean(self, text: bytes, *, whole: bool) -> bytes:
        return text

    def learn(self, id: bytes, name: bytes) -> None: ...

    def failed(self, code: int) -> None: ...


def _rewritten(key: int, schema: Schema, version: int, frame: bytes, own: Advertise) -> bytes:
    """Return a response without a head as clients get it."""
    return finished(
        rewritten(key, schema, version, frame, 0, _View(own), guarded=False, substituted=False)
    )


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
            changed = _rewritten(it.key, it.response, version, frame, advertise)
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
    changed = _rewritten(
        FIND_COORDINATOR, COORDINATOR.response, 0, _coordinator(b"broker-7.internal"), _own
    )
    expected = bytes(2) + struct.pack(">ih", 7, 15) + OWN.encode() + struct.pack(">i", 20_007)
    assert changed == expected


def test_a_node_without_a_host_stays_as_it_is() -> None:
    assert COORDINATOR is not None
    frame = _coordinator(b"")
    assert _rewritten(FIND_COORDINATOR, COORDINATOR.response, 0, frame, _own) == frame


@pytest.mark.parametrize("host", [b"x" * 256, "bröker".encode()])
def test_a_host_that_cannot_be_one_is_a_violation(host: bytes) -> None:
    assert COORDINATOR is not None
    with pytest.raises(PeerError, match="a host"):
        _rewritten(FIND_COORDINATOR, COORDINATOR.response, 0, _coordinator(host), _own)


def test_listeners_of_controllers_are_empty() -> None:
    assert QUORUM is not None
    version = QUORUM.response.last
    for seed in range(20):
        frame = bytes(body(QUORUM.response, version, (), seed).data)
        changed = _rewritten(DESCRIBE_QUORUM, QUORUM.response, version, frame, _own)
        assert not _hosts(QUORUM, version, changed)
