"""Kafka's frames out of a fuzzer's bytes: of every API and version, whole, cut and mutated."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

from gateway.wire.kafka import frames
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.in_flight import Asked
from gateway.wire.kafka.schema import Api, Schema, api, apis
from gateway.wire.kafka.to_broker import LONGEST_TEXT
from tests.apache_kafka.encoding import body
from tests.fuzz.report import Row
from tests.fuzz.source import Source
from tests.playbooks_kafka.frames import (
    METADATA,
    batch,
    described,
    fetch,
    fetched,
    metadata,
    old,
    produce,
    produced,
)
from tests.playbooks_kafka.test_again import RIGHT, WRONG, choose, show

_ALL = tuple(apis())
_TOPICS = ("a", "b", "secret", "unknown", "c" * 249, "no name")

LONGEST_INPUT = 300
"""Bytes of an input of `storm`: some dozen frames."""


BODIES = 128
"""Random bodies of each message and version."""


@lru_cache(50_000)
def _body(it: Schema, version: int, seed: int) -> bytes:
    return bytes(body(it, version, (), seed).data)


def _version(source: Source, it: Api) -> int:
    """Return a version that there is, or in few cases one beside these."""
    first, last = it.request.first, it.request.last
    if source.odd(16):
        return source.pick((first - 1, last + 1, -1, 32767))
    return first + source.below(last - first + 1)


def any_request(source: Source, correlation: int) -> bytes:
    """Return a request of any API, with a random body of its version."""
    it = source.pick(_ALL)
    version = _version(source, it)
    known = min(max(version, it.request.first), it.request.last)
    made = _body(it.request, known, source.below(BODIES))
    client = source.pick((b"client", b"", None))
    request = frames.written(it, known, correlation, client, made)
    return mutated(source, request[:6] + version.to_bytes(2, signed=True) + request[8:])


def usual_request(source: Source, correlation: int) -> bytes:
    """Return a request as clients send it, with one of a few topics."""
    topic = source.pick(_TOPICS)
    records = batch(source.below(5), 50) if source.odd(2) else old() + batch(1)
    match source.below(6):
        case 0:
            version = source.below(19)
            made = fetch(version, correlation, topic, source.pick(_TOPICS))
        case 1 | 2:
            version = source.below(14)
            topics = {topic: records} | ({source.pick(_TOPICS): old()} if source.odd(2) else {})
            made = produce(version, correlation, source.pick((1, -1, 0)), **topics)
        case 3:
            made = metadata(source.below(14), correlation, topic)
        case 4:
            made = choose(source.pick(("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")), correlation, 1)
        case _:
            made = show(source.pick((RIGHT, WRONG, b"n,,n=alice,r=abc", b"")), correlation)
    return mutated(source, made)


def response(source: Source, asked: Asked) -> bytes:
    """Return a response to a request: a random body, or a usual one."""
    it = api(asked.key)
    assert it is not None
    version = min(max(asked.version, it.response.first), it.response.last)
    if source.odd(2):
        made = _body(it.response, version, source.below(BODIES))
        said = frames.response(it, version, asked.correlation, made)
    else:
        said = _usual_answer(source, it, version, asked.correlation)
    return mutated(source, said)


def _usual_answer(source: Source, it: Api, version: int, correlation: int) -> bytes:
    topics = [source.pick(_TOPICS) for _ in range(source.below(3))]
    records = source.pick((batch(3, 40), old(), b"", batch(9)[:-1]))
    if it.key == FETCH:
        return fetched(version, correlation, **dict.fromkeys(topics, records))
    if it.key == PRODUCE:
        return produced(version, correlation, **dict.fromkeys(topics, source.below(3)))
    if it.key == METADATA:
        brokers = {1: "one.internal", 2: "two.internal"}
        return described(version, correlation, *topics, brokers=brokers)
    made = _body(it.response, version, source.below(8))
    return frames.response(it, version, correlation, made)


def mutated(source: Source, frame: bytes) -> bytes:
    """Return a frame as it is, or in some cases with other bytes, shorter, longer, or torn."""
    how = source.byte()
    if how < 160 or len(frame) < 8:
        return frame
    at = source.below(len(frame))
    if how < 200:  # some bytes are others
        other = bytearray(frame)
        for _ in range(1 + how % 3):
            other[4 + source.below(len(frame) - 4)] = source.pick((0, 1, 127, 128, 255, how))
        return bytes(other)
    if how < 220:  # its end is missing, and it says so
        return _sized(frame[4 : max(5, at)])
    if how < 235:  # bytes are too many
        return _sized(frame[4:at] + source.take(1 + how % 8) + frame[max(4, at) :])
    if how < 245:  # its end is missing, and it does not say so
        return frame[:at]
    return source.pick((0, -1, 3, 11, 2**31 - 1)).to_bytes(4, signed=True) + frame[4:]


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


TOLD_EVERY = 100_000
"""Frames between two reports."""

MOST_KEPT = 2 * LONGEST_TEXT
"""Bytes that a scanner may leave of a frame that passes."""


def storm(
    targets: Mapping[str, Callable[[bytes], int]],
    count: int,
    seed: int,
    say: Callable[[str], None],
    name: str = "kafka",
) -> Row:
    """Run targets on random inputs until they made so many frames. What fails is a finding, with
    its input; it is the last one. `name`: of the row."""
    noise, began, first = random.Random(seed), time.monotonic(), _memory()
    said = inputs = told = 0
    found: list[str] = []
    while said < count and not found:
        for target_name, target in targets.items():
            data = noise.randbytes(noise.randrange(LONGEST_INPUT))
            inputs += 1
            try:
                said += target(data)
            except Exception as error:
                found.append(f"{target_name} {data.hex()}: {error!r}")
        if said >= told + TOLD_EVERY:
            told = said
            say(f"{name}: {said:,} frames, {said / (time.monotonic() - began):,.0f}/s")
    seconds = time.monotonic() - began
    return Row(name, inputs, said, seconds, None, tuple(found), (first, _memory()))


def _memory() -> int:
    """Return the most MiB that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
