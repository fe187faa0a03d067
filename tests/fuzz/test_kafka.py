"""Kafka's targets without a guide, and frames of every API and version in both directions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import PeerError
from gateway.wire.contract import Direction
from gateway.wire.kafka import frames
from gateway.wire.kafka.schema import REQUEST_STEPS
from gateway.wire.kafka.walk import plan, unsigned
from tests.apache_kafka.encoding import body
from tests.playbooks_kafka.frames import EVERY_VERSION, METADATA, known
from tests.playbooks_kafka.script import KafkaServices
from tests.support.examples import examples
from tests.support.versions import by_version

from .kafka import mutated, storm
from .source import Source
from .targets import KAFKA
from .targets.kafka import Watched

TO_BROKER, TO_CLIENT = Direction


def test_a_storm_finds_nothing() -> None:
    row = storm(KAFKA, 1500, 1, lambda _: None)
    assert row.findings == ()
    assert row.frames >= 1500


def test_a_storm_names_what_fails() -> None:
    def fails(data: bytes) -> int:
        raise RuntimeError("a bug")

    (found,) = storm({"a target": fails}, 10, 1, lambda _: None).findings
    assert "a bug" in found


@pytest.mark.parametrize("target", KAFKA)
@examples(20)
@given(data=st.binary(max_size=200))
def test_whatever_bytes_there_are(target: str, data: bytes) -> None:
    assert KAFKA[target](data) >= 0


few = st.sampled_from(b"\x00\x01\x02\x03\x05\x0a\x10\x40\x80\xa5\xd0\xe6\xf0\xff")


@pytest.mark.parametrize("target", KAFKA)
@examples(20)
@given(data=st.lists(few, max_size=200).map(bytes))
def test_few_choices_again_and_again(target: str, data: bytes) -> None:
    """So that requests meet their responses."""
    assert KAFKA[target](data) >= 0


def _open(key: int, seed: int) -> Watched:
    services = KafkaServices(methods=("basic", "scram"))
    if seed % 2:
        services.forbidden = set()
    return Watched(services, known=("a",))


@pytest.mark.parametrize(("key", "version"), by_version(EVERY_VERSION))
def test_each_request_and_its_answer_whole_and_mutated(key: int, version: int) -> None:
    """Coverage does not tell the fields of an API from those of another."""
    it, noise = known(key), random.Random(f"{key} {version}")
    for seed in range(2):
        request = bytes(body(it.request, version, (), seed).data)
        response = bytes(body(it.response, version, (), seed).data)
        asked = frames.written(it, version, 7, b"c", request)
        told = frames.response(it, version, 7, response)
        for change in range(2):
            play = _open(key, seed)
            source = Source(noise.randbytes(40) if change else b"")
            play.says(TO_BROKER, mutated(source, asked))
            if play.asked() is not None:
                play.says(TO_CLIENT, mutated(source, told))
            play.close()


def test_a_frame_of_too_many_fields_is_a_violation() -> None:
    """It is refused after so many steps, and not after all of them."""
    schema = known(METADATA).request
    body_ = unsigned(REQUEST_STEPS + 2) + (bytes(16) + b"\0\0") * (REQUEST_STEPS + 1) + bytes(4)
    with pytest.raises(PeerError, match="too many"):
        plan(schema, 12, whole=True).walk(body_, 0, len(body_))
