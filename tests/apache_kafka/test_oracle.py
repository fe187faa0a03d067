"""Kafka's own classes read what the tables say, and what the gateway has put into a frame."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.kafka.schema import Api, Schema, apis
from gateway.wire.kafka.walk import plan, splice, unsigned
from tests.apache_kafka.broker import kafka_jars
from tests.apache_kafka.encoding import body
from tests.real.brokers.jars import Say, digest, filled_once, jars_of, java, run_tool, tool
from tests.real.fixtures import or_skip

pytestmark = pytest.mark.real

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SEEDS = range(20)
ADDRESS = frozenset({"Host", "Port"})
FETCH_BODY = bytes.fromhex("ffffffff 00000000 00000000 00000000 00 00000000 00000000 01 01 01")
"""A request of Fetch 12 without topics, up to its tagged fields."""

HOST, PORT = "gateway.example", 9092

Reading = tuple[int, Any]


def _jars(say: Say) -> tuple[Path, Path]:
    """Return the folders with the classes of the latest Kafka and of Kafka 3.9, the last one with
    the versions that Kafka 4.0 removed. Raises as `pulsar_jars`."""
    java()
    latest = jars_of(HERE / "pom.xml", "kafka-clients", "", "20 MB", say)
    return latest, kafka_jars(say, "3.9")


class Classes:
    """The classes of one Kafka release, in a Java process."""

    def __init__(self, jars: Path) -> None:
        """Raises MissingToolError without a JDK; FetchError."""
        source = HERE / "Oracle.java"

        def compile_into(into: Path) -> None:
            run_tool("javac", [tool("javac"), "-d", str(into), "-cp", f"{jars}/*", str(source)])

        recipe = source.read_bytes() + jars.name.encode()
        classes = filled_once(f"kafka-oracle-{digest(recipe)}", compile_into)
        self._process = subprocess.Popen(
            [java(), "-XX:-UsePerfData", "-cp", f"{jars}/*:{classes}", "Oracle"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def read(self, key: int, version: int, kind: str, frame: bytes) -> Reading | None:
        """Return how many bytes a message's class leaves, and the fields that it reads; None if the
        class does not have the version any more."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{key} {version} {kind} {frame.hex()}\n")
        self._process.stdin.flush()
        left, _, rest = self._process.stdout.readline().rstrip("\n").partition(" ")
        assert left != "!", rest
        return None if left == "removed" else (int(left), json.loads(rest))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Oracle:
    """Kafka's own classes: the latest ones, and for versions that these no longer have those of
    Kafka 3.9."""

    def __init__(self, say: Say) -> None:
        """Raises MissingToolError without Java (a JDK) or, the first time, Maven; FetchError."""
        self._latest, self._before = map(Classes, _jars(say))

    def read(self, key: int, version: int, kind: str, frame: bytes) -> Reading:
        """Return how many bytes a message's class leaves, and the fields that it reads."""
        reading = self._latest.read(key, version, kind, frame)
        if reading is None:
            reading = self._before.read(key, version, kind, frame)
        assert reading is not None, f"{kind} {key} has no version {version}"
        return reading

    def close(self) -> None:
        self._latest.close()
        self._before.close()


@pytest.fixture(scope="module")
def oracle(say: Say) -> Iterator[Oracle]:
    started = or_skip(Oracle, say)
    yield started
    started.close()


def test_kafka_reads_a_tagged_field_by_what_stands_in_it(oracle: Oracle) -> None:
    """Whatever size it states: so a walk by sizes alone could be led past what the broker reads."""
    stated = {3: 0, 9: 6}
    for size, left in stated.items():
        frame = FETCH_BODY + bytes([1, 0, size]) + unsigned(3) + b"ab" + bytes(left)
        assert oracle.read(1, 12, "request", frame)[0] == left


def test_the_tables_are_those_of_the_definitions(say: Say) -> None:
    jars = [jar for it in or_skip(_jars, say) for jar in it.glob("kafka-clients-*.jar")]
    done = subprocess.run(
        [sys.executable, "proto/kafka.py", *jars, "-"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    written = ROOT / "gateway" / "wire" / "kafka" / "_messages.py"
    assert done.stdout == written.read_text(encoding="utf-8")


def _values(read: Any, name: str) -> list[Any]:
    """Return all values of a name, at all levels."""
    if isinstance(read, list):
        return [value for it in read for value in _values(it, name)]
    if not isinstance(read, dict):
        return []
    here = [it for key, it in read.items() if key == name]
    return here + [value for it in read.values() for value in _values(it, name)]


def _replaced(read: Any) -> Any:
    """Return the same with the gateway's address in place of all others."""
    if isinstance(read, list):
        return [_replaced(it) for it in read]
    if not isinstance(read, dict):
        return read
    own = {"host": HOST, "port": PORT}
    return {
        key: own[key] if key in own and not isinstance(it, dict | list) else _replaced(it)
        for key, it in read.items()
    }


def _put(name: str, old: bytes, *, flexible: bool) -> bytes:
    """Return the gateway's host or port in the form of what stood there."""
    if name == "Port":
        return PORT.to_bytes(len(old))
    length = unsigned(len(HOST) + 1) if flexible else struct.pack(">h", len(HOST))
    return length + HOST.encode()


@pytest.mark.parametrize("api", list(apis()), ids=lambda api: api.name)
def test_kafka_reads_what_the_tables_say(oracle: Oracle, api: Api) -> None:
    for kind, schema in (("request", api.request), ("response", api.response)):
        for version in range(schema.first, schema.last + 1):
            for seed in SEEDS:
                _compare(oracle, api.key, kind, schema, version, seed)


def _compare(oracle: Oracle, key: int, kind: str, schema: Schema, version: int, seed: int) -> None:
    frame = bytes(body(schema, version, (), seed).data)
    left, read = oracle.read(key, version, kind, frame)
    assert left == 0
    walk = plan(schema, version, ADDRESS).walk(frame, 0, len(frame))
    hosts = [frame[place.start : place.end] for place in walk.places if place.name == "Host"]
    texts = [text for text in _values(read, "host") if text is not None]
    assert len(texts) <= len(hosts)
    assert all(any(host.endswith(text.encode()) for host in hosts) for text in texts)
    flexible = version >= schema.flexible
    changes = [
        (place, _put(place.name, frame[place.start : place.end], flexible=flexible))
        for place in walk.places
    ]
    changed = splice(frame, walk, changes)
    assert oracle.read(key, version, kind, changed) == (0, _replaced(read))
