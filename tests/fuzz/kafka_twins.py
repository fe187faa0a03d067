"""Two sessions of Kafka on the same bytes: one with pure scanners, one with compiled ones.

Clients, brokers, limits and time do the same to both. What peers get, what is counted, where
partitions end and who waits must not differ. Bytes move as the plane moves them, so the walkers
pass frames without the scanners.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import patch

from gateway.errors import PeerError
from gateway.wire.counters import ENDLESS
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.directions import directions
from gateway.wire.kafka.frames import Head, request
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.requests import Requests
from gateway.wire.kafka.responses import Responses
from gateway.wire.kafka.session import SWEPT
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.kafka.watch import Watch
from gateway.wire.services import Services
from tests.playbooks_kafka.frames import (
    FETCH,
    METADATA,
    PRODUCE,
    ask,
    batch,
    described,
    fetch,
    metadata,
    named,
    produce,
    tell,
)
from tests.playbooks_kafka.script import KafkaServices, Play

TOPICS = ("a", "b", "longer")
VERSIONS = {PRODUCE: (8, 9, 12, 13), FETCH: (11, 12, 13, 17)}
HEARTBEAT = 12

USUAL = (ENDLESS,) * 6
"""Of an allowance."""

_COUNTS = ("messages", "surplus", "bytes", "receipts")


def _pure(
    services: Services,
    book: Book,
    in_flight: InFlight,
    substitutes: Substitutes,
    throttle: Throttle,
    _watch: Watch,
) -> tuple[Requests, Responses]:
    return (
        Requests(book, in_flight, substitutes, throttle),
        Responses(services, book, in_flight, substitutes, throttle),
    )


def _forms(noise: random.Random) -> tuple[str, int, int]:
    """Return the topic of most frames, and the versions of Produce and Fetch."""
    return noise.choice(TOPICS), noise.choice(VERSIONS[PRODUCE]), noise.choice(VERSIONS[FETCH])


class Twins:
    """A pair with pure scanners, and one with compiled ones. `is_over`: both have ended, or a peer
    has violated its protocol."""

    def __init__(self, noise: random.Random) -> None:
        self._noise = noise
        self.plays: list[Play] = []
        for make in (_pure, directions):
            with patch("gateway.wire.kafka.session.directions", make):
                play = Play(KafkaServices(), known=TOPICS)
            play.session._substitutes._draw = random.Random(1).randbytes  # type: ignore[attr-defined]
            self.plays.append(play)
        self.is_over = False
        self._calm: int | None = None  # the API of the only requests for a while, which are alike
        self._number = 0
        self._forms = _forms(noise)
        self._unanswered: set[int] = set()  # of Produce with acks=0
        self._at_broker = b""  # of a request that is cut
        self._owed: list[Head] = []  # what the broker has to answer
        self._later = {"client": b"", "broker": b""}  # the rest of what a peer says

    def step(self) -> int:
        """Have something happen to both. Return the number of new frames."""
        if self._noise.random() < 0.05:
            self._calm = self._noise.choice((None, FETCH, PRODUCE))
        dice = self._noise.random()
        if dice < 0.5:
            count = self._ask()
        elif dice < 0.98:
            count = self._response()
        else:
            count = self._rarely()
        pure, compiled = map(_state, self.plays)
        assert pure == compiled
        pure, compiled = map(_owed, self.plays)
        assert pure == compiled or self.is_over  # what precedes a violation may have been sent
        self.is_over |= self.plays[0].end is not None
        return count

    def _both(self, act: Callable[[Play], object]) -> bytes:
        """Do this to both. Return what a peer got by it, if it got anything."""
        pure, compiled = (self._outcome(act, play) for play in self.plays)
        assert pure == compiled
        return pure if isinstance(pure, bytes) else b""

    def _outcome(self, act: Callable[[Play], object], play: Play) -> object:
        try:
            return act(play)
        except PeerError as error:
            self.is_over = True
            return str(error)

    # -- the client --------------------------------------------------------------------------

    def _ask(self) -> int:
        count = self._noise.choice((1, self._noise.randrange(1, 30)))
        said = self._piece("client", b"".join(self._request() for _ in range(count)))
        self._client(said)
        return count

    def _client(self, said: bytes) -> None:
        self._at_broker += self._both(lambda play: play.client(said))
        self._note()

    def _note(self) -> None:
        """Note what the broker has got whole."""
        got = self._at_broker
        while len(got) >= 4 and len(got) >= (size := 4 + int.from_bytes(got[:4])):
            head = request(got[:size])
            if head.correlation not in self._unanswered:
                self._owed.append(head)
            got = got[size:]
        self._at_broker = got

    def _request(self) -> bytes:
        noise = self._noise
        self._number += 1
        topic, produces, fetches = self._forms
        if self._calm == FETCH:
            return fetch(fetches, self._number, topic)
        if self._calm == PRODUCE:
            return produce(produces, self._number, 1, **{topic: self._batches()})
        if noise.random() < 0.1:
            topic, produces = noise.choice(TOPICS), noise.choice(VERSIONS[PRODUCE])
        kind = noise.random()
        if kind < 0.03:
            return self._flawed(produce(produces, self._number, 1, **{topic: batch(1)}))
        if kind < 0.06:
            return metadata(12, self._number, topic)
        if kind < 0.08:
            return ask(HEARTBEAT, 4, self._number, GroupId="g", MemberId="m")
        if kind < 0.5:
            return fetch(fetches, self._number, *[topic][: noise.random() < 0.9])
        acks = noise.choice((1, 1, 1, -1, 0))
        if not acks:
            self._unanswered.add(self._number)
        return produce(produces, self._number, acks, **{topic: self._batches()})

    def _batches(self) -> bytes:
        noise = self._noise
        if self._calm is not None and noise.random() < 0.97:
            return batch(noise.randrange(1, 5), 100)
        many = noise.choice((1, 1, 1, 1, 2, 3))
        sizes = (0, 5, 70, 200, 20_000)
        return b"".join(batch(noise.randrange(5), noise.choice(sizes)) for _ in range(many))

    def _flawed(self, frame: bytes) -> bytes:
        """Return a frame with another byte, most often in what frames have in common."""
        damaged = bytearray(frame)
        damaged[self._noise.randrange(4, len(frame))] ^= 1 << self._noise.randrange(8)
        return bytes(damaged)

    # -- the broker --------------------------------------------------------------------------

    def _response(self) -> int:
        count = self._noise.randrange(len(self._owed) + 1)
        said = self._piece("broker", b"".join(map(self._answer_to, self._owed[:count])))
        del self._owed[:count]
        self._both(lambda play: play.broker(said))
        self._at_broker += self._both(Play.broker_got)  # which went on because of the responses
        self._note()
        return count

    def _answer_to(self, head: Head) -> bytes:
        noise = self._noise
        topic, *_ = self._forms
        flaw = self._flawed if noise.random() < 0.003 else bytes
        error = noise.choice((0,) * 200 + (6,))
        place = {"Index": noise.randrange(3), "BaseOffset": noise.randrange(1 << 40)}
        if head.key == PRODUCE:
            told = [{**place, "ErrorCode": error}]
            parts = [{**named(head.version, topic), "PartitionResponses": told}]
            return flaw(tell(PRODUCE, head.version, head.correlation, Responses=parts))
        if head.key == FETCH:
            partition = {
                "PartitionIndex": noise.randrange(3),
                "ErrorCode": error,
                "HighWatermark": noise.randrange(1 << 40),
                "Records": self._batches()[: noise.choice((None, None, None, -7))],
            }
            parts = [{**named(head.version, topic, "Topic"), "Partitions": [partition]}]
            return flaw(tell(FETCH, head.version, head.correlation, Responses=parts))
        if head.key == METADATA:
            return described(head.version, head.correlation, topic)
        return tell(head.key, head.version, head.correlation)

    # -- both, and others --------------------------------------------------------------------

    def _piece(self, who: str, said: bytes) -> bytes:
        """Return what a peer says now: all, or a part, of which the rest comes later."""
        said = self._later[who] + said
        cut = len(said) if self._noise.random() < 0.5 else self._noise.randrange(len(said) + 1)
        self._later[who] = said[cut:]
        return said[:cut]

    def _rarely(self) -> int:
        noise = self._noise
        kind = noise.randrange(4)
        if kind == 0:
            seconds = noise.choice((0.1, 6.0, SWEPT))
            self._both(lambda play: play.after(seconds))
        elif kind == 1 and (count := len(self.plays[0].services.admitted)):
            at = noise.randrange(count)
            limits = noise.choice((*USUAL, 1, 5, 40)), noise.choice((*USUAL, 100, 50_000))
            self._both(lambda play: _limit(play, at, *limits))
        elif kind == 2 and noise.random() < 0.05:
            self._both(Play.leave)
        else:
            self._forms = _forms(noise)
        self._at_broker += self._both(Play.broker_got)
        self._note()
        return 0


def _limit(play: Play, at: int, messages: int, size: int) -> None:
    """Give an account another allowance."""
    account = play.services.admitted[at]
    account.hold()
    play.grant(account, messages, size)


def _state(play: Play) -> tuple[object, ...]:
    """Return what can be seen of a pair."""
    counts = [tuple(getattr(it, name) for name in _COUNTS) for it in play.services.admitted]
    ends = sorted(play.services.progress.ends())
    return counts, ends, play.ended, play.is_waiting


def _owed(play: Play) -> tuple[int, ...]:
    return tuple(scanner.owed for scanner in play.session.scanners)


def run(frames: int, seed: int) -> int:
    """Compare the twins on so many frames. Return how many there were."""
    noise = random.Random(seed)
    done = 0
    while done < frames:
        twins = Twins(noise)
        for _ in range(noise.randrange(5, 200)):
            if twins.is_over:
                break
            done += twins.step()
    return done
