"""Topics by name and id, and the time that answers tell."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.names import is_name
from gateway.wire.kafka.schema import Schema, apis
from gateway.wire.kafka.throttle import has_throttle, throttled
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.kafka.versions import HIDDEN
from gateway.wire.kafka.walk import plan
from tests.apache_kafka.encoding import body
from tests.support.versions import case


def _ids(*numbers: int) -> list[bytes]:
    return [number.to_bytes(16) for number in numbers]


def test_names_are_known_by_the_ids_that_were_learned() -> None:
    first, second = _ids(1, 2)
    known = TopicIds()
    known.learn(first, b"orders")
    known.learn(second, b"bills")
    assert (known.name(first), known.name(second)) == (b"orders", b"bills")
    assert known.name(_ids(3)[0]) is None


def test_a_topic_that_was_made_anew_has_another_id() -> None:
    first, second = _ids(1, 2)
    known = TopicIds()
    known.learn(first, b"orders")
    known.learn(second, b"orders")
    assert known.name(second) == b"orders"


def test_the_one_that_was_not_used_for_longest_is_forgotten() -> None:
    ids = _ids(*range(1, 4))
    known = TopicIds(most=2)
    known.learn(ids[0], b"a")
    known.learn(ids[1], b"b")
    assert known.name(ids[0]) == b"a"
    known.learn(ids[2], b"c")
    assert [known.name(it) for it in ids] == [b"a", None, b"c"]


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"a b", b"x" * 250, "ü".encode()])
def test_a_name_that_brokers_refuse_is_none(name: bytes) -> None:
    assert not is_name(name)
    if name:
        with pytest.raises(PeerError):
            TopicIds().learn(_ids(1)[0], name)


@pytest.mark.parametrize("name", [b"orders", b"a.b-c_D9", b"x" * 249, b"..."])
def test_other_names_are(name: bytes) -> None:
    assert is_name(name)


# -- throttle --------------------------------------------------------------------------------------

THROTTLED = [
    case(it.response, version, it.response, version, id=f"{it.name}-{version}")
    for it in apis()
    for version in range(it.response.first, it.response.last + 1)
    if has_throttle(it.response, version)
]
TIME = frozenset({"ThrottleTimeMs"})


@pytest.mark.parametrize(("schema", "version"), THROTTLED)
def test_an_answer_says_the_longer_of_both_times(schema: Schema, version: int) -> None:
    for seed in range(5):
        frame = body(schema, version, (), seed).data
        (place,) = plan(schema, version, TIME).walk(frame, 0, len(frame)).places
        for told, own in ((700, 300), (300, 700), (0, 2**40)):
            frame[place.start : place.end] = told.to_bytes(4)
            changed = throttled(schema, version, bytes(frame), 0, own)
            assert changed[place.start : place.end] == min(2**31 - 1, max(told, own)).to_bytes(4)
            assert len(changed) == len(frame)


def test_nearly_all_answers_say_it() -> None:
    offered = [it for it in apis() if it.is_for_clients and it.key not in HIDDEN]
    without = {it.name for it in offered if not has_throttle(it.response, it.response.last)}
    assert without == {"DescribeQuorum", "SaslAuthenticate", "SaslHandshake", "WriteTxnMarkers"}
