"""The harness finds what it is for."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.contract import Direction, Inject, Replace
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from tests.conformance.pulsar import to_broker
from tests.playbooks.frames import error
from tests.playbooks.script import Play
from tests.playbooks.services import URL_1
from tests.support.frames import send, simple

from .live.peers import Counter
from .live.plan import drawn
from .live.streams import END, IDS, arsenal, requests, responses
from .pair import Pair
from .reading import shown, walk
from .report import Row, table
from .source import Source
from .targets import TARGETS

STREAM = send(1, 1) + simple(Kind.PING) + END


def test_missing_bytes_read_as_zeros() -> None:
    source = Source(b"\x05")
    assert [source.byte(), source.byte(), source.number(), source.below(7)] == [5, 0, 0, 0]
    assert source.left == 0


@pytest.mark.parametrize("size", range(1, 40))
def test_frames_are_counted_once_however_they_are_cut(size: int) -> None:
    counter = Counter()
    for at in range(0, len(STREAM), size):
        counter.feed(STREAM[at : at + size])
    assert counter.frames == 3
    assert counter.last == END


def test_a_brokers_address_in_a_text_is_seen() -> None:
    (said,) = walk(error(text=f"at {URL_1}"))
    assert said.command is not None
    assert shown(said.command) == [f"at {URL_1}"]
    assert shown(Play().broker(error(text=f"at {URL_1}")).replaced()) == []


def pair() -> Pair:
    play = Play()
    return Pair(play.session, play.services)


@pytest.mark.parametrize(
    "wrong",
    [
        Replace(error(text=f"at {URL_1}")),
        Replace(error()[:-1]),
        Replace(error() + b"\x00"),
        Inject(Direction.TO_CLIENT, error()),
    ],
)
def test_effects_that_are_wrong_are_found(monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    rows = COMMANDS.rows[Direction.TO_CLIENT]
    decide = rows[Kind.ERROR]._replace(decide=lambda *_: (wrong,))
    monkeypatch.setitem(rows, Kind.ERROR, decide)
    with pytest.raises((AssertionError, struct.error)):
        pair().say(Direction.TO_CLIENT, error())


def test_an_account_that_is_not_given_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PulsarSession, "close", lambda _: None)
    one = pair()
    one.say(Direction.TO_BROKER, simple(Kind.PRODUCER, topic="t", producer_id=1, request_id=1))
    with pytest.raises(AssertionError):
        one.close()


def fuzz_for_long(target: str) -> None:
    noise = random.Random(1)
    for _ in range(2000):
        TARGETS[target](noise.randbytes(400))


class Careless(ToBrokerScanner):
    """Counts a message too many in each chunk that passes whole."""

    __slots__ = ()

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        cleared = super().scan(chunk, start, end)
        if cleared == end and self.producers:
            next(iter(self.producers.values())).messages += 1
        return cleared


def test_a_scanner_that_counts_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(to_broker, "ToBrokerScanner", Careless)
    with pytest.raises(AssertionError):
        fuzz_for_long("scanner")


@pytest.mark.parametrize("direction", Direction)
def test_streams_keep_the_connection_open(direction: Direction) -> None:
    of = arsenal(direction, 1, 2, "127.0.0.1:6650")
    for stream in of.streams:
        one = pair()
        one.say(direction, stream.data)
        assert not one.over
        assert len(list(walk(stream.data))) == stream.frames
        assert stream.data.endswith(END)
    assert of.poison


def test_plans_and_streams_are_the_same_for_each_seed() -> None:
    arsenals = {direction: arsenal(direction, 1, 2, "b:1") for direction in Direction}
    assert arsenals == {direction: arsenal(direction, 1, 2, "b:1") for direction in Direction}
    one, same, other = (drawn(1, number, arsenals, 5) for number in (1, 1, 2))
    assert (one.end, one.poison, one.times) == (same.end, same.poison, same.times)
    assert one.version != other.version


def test_what_opens_the_connection_is_answered() -> None:
    play = Play()
    for said in walk(requests()):
        play.client(said.data).forwards()
    for said in walk(responses()):
        play.broker(said.data).forwards()
    for id in IDS:
        play.client(send(id, 1)).passes()


def test_a_table_names_what_was_found() -> None:
    row = Row("scanner", 10, 2000, 2.0, 100, ("crash-1",), (50, 60))
    lines = table([row]).splitlines()
    assert lines[1].split() == ["scanner", "10", "2,000", "1,000", "100", "1", "50", "->", "60"]
    assert lines[2] == "scanner: crash-1"
    assert not Path("crash-1").exists()
