"""The tap itself: it must find a broker that shows, and must not take users' payloads for one."""

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


@pytest.mark.parametrize("url", ["pulsar://127.0.0.77:6650", "pulsar://localhost:16650"])
def test_an_address_in_an_answer_is_found(url: str) -> None:
    answer = frame(Kind.LOOKUP_RESPONSE, {1: url, 3: 1, 4: 9})
    assert len(leaks(frame(Kind.CONNECTED, {1: "server"}) + answer, TRACES)) == 1


def test_an_address_in_the_text_of_an_error_is_found() -> None:
    error = frame(
        Kind.ERROR,
        {1: 1, 2: 6, 3: "not served by this instance:127.0.0.77:8080. Please redo the lookup."},
    )
    assert [leak.trace for leak in leaks(error, TRACES)] == ["127.0.0.77"]


@pytest.mark.parametrize(
    "before", [b"", b"\x0e\x01sum4", b"\x0e\x02\0\0\0\x02\x08\x01\x0e\x01sum4"]
)
def test_a_payload_may_hold_anything(before: bytes) -> None:
    assert leaks(message(b"metadata", b"pulsar://127.0.0.77:16650", before), TRACES) == []


def test_the_metadata_of_a_message_is_searched() -> None:
    assert len(leaks(message(b"producer at 127.0.0.77", b"payload"), TRACES)) == 1


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_recording_may_end_anywhere(cut: int) -> None:
    whole = message(b"metadata", b"pulsar://127.0.0.77:16650", b"\x0e\x01sum4")
    assert leaks(whole[:cut], TRACES) == []
