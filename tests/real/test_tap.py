"""The tap itself: it must find a visible broker, and must not mistake users' payloads for one."""

from collections.abc import Iterator

import pytest

from .brokers.standalone import Standalone
from .clients import fresh_topic
from .fixtures import Connect
from .frames import Kind, encode, frame
from .tap import Tap, leaks

TRACES = ("127.0.0.77", ":16650")


def message(metadata: bytes, payload: bytes, before: bytes = b"") -> bytes:
    tail = before + len(metadata).to_bytes(4) + metadata + payload
    return frame(Kind.MESSAGE, {1: 7, 2: encode({1: 3, 2: 4})}, tail)


@pytest.fixture
def tap(pulsar: Standalone) -> Iterator[Tap]:
    relay = Tap(pulsar.service_url)
    yield relay
    relay.close()


def test_a_broker_without_a_gateway_is_caught(
    pulsar: Standalone, tap: Tap, connect: Connect
) -> None:
    client = connect(tap.url)
    client.create_producer(fresh_topic()).send(b"x")
    client.close()
    tap.close()
    assert {leak.trace for leak in tap.leaks(pulsar.traces)} >= {pulsar.host, f":{pulsar.port}"}


def found(stream: bytes) -> set[str]:
    return {leak.trace for leak in leaks(stream, TRACES)}


@pytest.mark.parametrize(
    ("url", "trace"),
    [("pulsar://127.0.0.77:6650", "127.0.0.77"), ("pulsar://localhost:16650", ":16650")],
)
def test_an_address_in_an_answer_is_found(url: str, trace: str) -> None:
    answer = frame(Kind.LOOKUP_RESPONSE, {1: url, 3: 1, 4: 9})
    assert found(frame(Kind.CONNECTED, {1: "server"}) + answer) == {trace, url}


@pytest.mark.parametrize(
    "spelled",
    [
        "not served by this instance:127.0.0.77:8080. Please redo the lookup.",
        "channel [id: 0x1, L:/127.0.0.77:6650 - R:/10.0.0.1:4711]",
        "cannot connect to pulsar-0/127.0.0.77:6650",
        "::ffff:127.0.0.77",
        "::FFFF:7F00:4D",
        "0x7F00004D",
        "ip-127-0-0-77.internal",
        "from \x7f\0\0M on",
    ],
)
def test_an_address_in_a_text_is_found_in_any_spelling(spelled: str) -> None:
    assert found(frame(Kind.ERROR, {1: 1, 2: 6, 3: spelled})) == {"127.0.0.77"}


@pytest.mark.parametrize(
    "url",
    ["pulsar://elsewhere:6650", "pulsar+ssl://10.1.2.3:6651", "http://elsewhere:8080", "HTTPS://x"],
)
def test_any_foreign_url_is_found(url: str) -> None:
    assert found(frame(Kind.ERROR, {1: 1, 2: 6, 3: f"ask {url}/admin, please"})) == {url}


@pytest.mark.parametrize(
    "url", ["pulsar://abc.def.gw:6650", "pulsar://127.0.0.1:20000", "pulsar://broker"]
)
def test_a_broker_s_substitute_is_no_leak(url: str) -> None:
    assert found(frame(Kind.CLOSE_PRODUCER, {1: 1, 2: 1, 3: url, 4: url})) == set()


@pytest.mark.parametrize(
    "before", [b"", b"\x0e\x01sum4", b"\x0e\x02\0\0\0\x02\x08\x01\x0e\x01sum4"]
)
def test_a_payload_may_hold_anything(before: bytes) -> None:
    assert leaks(message(b"metadata", b"pulsar://127.0.0.77:16650", before), TRACES) == []


def test_the_metadata_of_a_message_is_searched() -> None:
    assert found(message(b"producer at 127.0.0.77", b"payload")) == {"127.0.0.77"}
    assert found(message(b"producer", b"at 127.0.0.77")) == set()


def test_a_payload_is_searched_on_request() -> None:
    stream = message(b"metadata", b"at 127.0.0.77")
    assert [leak.trace for leak in leaks(stream, TRACES, payloads=True)] == ["127.0.0.77"]


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_recording_may_end_anywhere(cut: int) -> None:
    whole = message(b"metadata", b"pulsar://127.0.0.77:16650", b"\x0e\x01sum4")
    assert leaks(whole[:cut], TRACES) == []
