"""One connection drawn from a seed: the frames of its peers, and the observations of each step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from google.protobuf.message import DecodeError

from gateway.plane.pair import DECISIONS_AT_ONCE
from gateway.wire.account import Action
from gateway.wire.contract import Credential, Direction, Principal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.counts import Suspects
from gateway.wire.pulsar.frames import KNOWN, Kind
from gateway.wire.pulsar.idtable import id_of
from gateway.wire.subject import Subject
from tests.fuzz.grammar import metadata, rest
from tests.fuzz.source import Source
from tests.playbooks.frames import connect, error, producer, producer_success, subscribe, success
from tests.playbooks.frames import read as read_frame
from tests.playbooks.script import listener
from tests.support.frames import command, data, message, metadata_of, number, receipt, send, tail
from tests.support.requests import to_session
from tests.support.scanners import scanners_of
from tests.support.subjects import caller_of

from .mutations import (
    descriptor_of,
    framed,
    mutated,
    odd_command,
    spilled,
    split_fields,
    true_fields,
)
from .names import any_name
from .watched import Admission, House, Thought, Watched, WatchedServices

_KNOWN = sorted(KNOWN)
_LOOKED_AT = (
    Kind.PRODUCER,
    Kind.PRODUCER,
    Kind.SUBSCRIBE,
    Kind.SUBSCRIBE,
    Kind.SEND,
    Kind.SEND,
    Kind.SEND,
    Kind.SEND,
    Kind.FLOW,
    Kind.FLOW,
    Kind.LOOKUP,
    Kind.PARTITIONED_METADATA,
    Kind.CLOSE_PRODUCER,
    Kind.CLOSE_CONSUMER,
    Kind.UNSUBSCRIBE,
    Kind.AUTH_RESPONSE,
    Kind.CONNECT,
    Kind.END_TXN,
)
_PASSING = (Kind.PING, Kind.PONG, Kind.ACK, Kind.SEEK, Kind.GET_SCHEMA, Kind.CONSUMER_STATS)
_MOST_STEPS = 30
_PIECES = 0.2
"""Probability that a chunk is received in pieces."""


class Counts(NamedTuple):
    """The counts of an account at the end of a step."""

    messages: int
    ceiling: int


@dataclass(slots=True)
class Step:
    """The changes between two observations. `admissions`, `thoughts`, `proven`: the new ones.

    `shown`: newer credentials of the client. `cut`: a frame reached the broker in part. `over`: the
    pair ended, and frames just before its last one may be lost. `consumers`: consumers whose
    MESSAGEs were charged when the step began. `opened`: by the broker, in this step.
    """

    said: tuple[Direction, bytes]
    to_broker: list[bytes]
    to_client: list[bytes]
    admissions: list[Admission]
    thoughts: list[Thought]
    proven: list[tuple[Credential, str]]
    counts: list[Counts]
    shown: list[Credential]
    cut: bool
    over: bool
    consumers: frozenset[int]
    opened: list[tuple[Action, int]]

    @property
    def frames(self) -> list[bytes]:
        """Return the frames that reached either peer."""
        return self.to_broker + self.to_client


@dataclass(slots=True)
class Played:
    """A finished connection. `ends`, `crashes`: as reported by the plane. `number`: of the peers'
    frames."""

    seed: int
    listener: ListenerContext
    steps: list[Step]
    ends: list[str]
    crashes: list[Exception]
    number: int

    @property
    def reached(self) -> int:
        """Return the number of frames forwarded to the broker."""
        return sum(len(step.to_broker) for step in self.steps)


def drawn_listener(rng: Random) -> tuple[ListenerContext, WatchedServices]:
    """Return a listener in any mode, with limits or without."""
    limited = rng.random() < 0.5
    services = WatchedServices(
        rng.choice((0, 1, 3, 20, 1000)) if limited and rng.random() < 0.8 else None
    )
    if limited and rng.random() < 0.3:
        services.paced, services.delay = set(Action), rng.choice((0.0, 1.0))
    mode = rng.choice(tuple(Mode))
    settings = {"unknown_pass": rng.random() < 0.5, "limited": limited}
    settings["checksums"] = rng.random() < 0.2
    return listener(services, mode, suspects=Suspects(rng.random), **settings), services


class WatchedClient(Client):
    """Records the credentials that it presented."""

    shown: list[Credential]

    def show(self, credential: Credential) -> bool:
        """See `Client`."""
        self.shown.append(credential)
        return super().show(credential)


def drawn_client(mode: Mode) -> WatchedClient:
    """Return the client alice, identified in one way or another."""
    hello = read_frame(connect()).connect
    verified = mode is not Mode.PASS_THROUGH
    alice = Principal("alice", verified, expires_at=None)
    credential = Credential("token", b"alice's token")
    client = WatchedClient(hello, alice, credential, Subject(caller_of(hello)))
    client.shown = []
    return client


class Record:
    """One connection and the observations of it so far."""

    def __init__(self, house: House, listener: ListenerContext, services: WatchedServices) -> None:
        self.listener = listener
        self.services = services
        self.client = drawn_client(listener.mode)
        self.watched = Watched(house, listener, self.client, services)
        self.steps: list[Step] = []
        self.number = 0
        self._seen = [0, 0, 0, 0]
        self._opened: list[tuple[Action, int]] = []
        self._consumers = frozenset[int]()

    def opens(self, party: tuple[Action, int]) -> None:
        """The broker's next frame opens this producer or consumer."""
        self._opened.append(party)

    def say(self, direction: Direction, *pieces: bytes, number: int = 1) -> Step:
        """Send this many frames of a peer; each piece is received by itself."""
        self.number += number
        self.watched.say(direction, *pieces)
        return self.look(direction, b"".join(pieces))

    def look(self, direction: Direction, said: bytes = b"") -> Step:
        """Make a step of everything that happened since the last one."""
        watched, services, client = self.watched, self.services, self.client
        to_broker = watched.frames(Direction.TO_BROKER)
        to_client = watched.frames(Direction.TO_CLIENT)
        news = (watched.session.thoughts, services.admissions, services.proven, client.shown)
        before, self._seen = self._seen, [len(those) for those in news]
        step = Step(
            (direction, said),
            to_broker,
            to_client,
            services.admissions[before[1] :],
            watched.session.thoughts[before[0] :],
            services.proven[before[2] :],
            [
                Counts(it.account.messages, it.account.messages_ceiling)
                for it in services.admissions
            ],
            client.shown[before[3] :],
            watched.is_cut(Direction.TO_BROKER) or watched.is_cut(Direction.TO_CLIENT),
            watched.over,
            self._consumers,
            self._opened,
        )
        self._opened = []
        self._consumers = frozenset(map(id_of, scanners_of(watched.session)[1].consumers))
        self.steps.append(step)
        return step

    def played(self, seed: int = 0) -> Played:
        """End the connection and return it."""
        ends = [f"{reason} {detail}" for reason, detail in self.watched.ends]
        crashes = list(self.watched.crashes)
        self.watched.end()
        return Played(seed, self.listener, self.steps, ends, crashes, self.number)


class Player:
    """Plays one connection. The same seed plays the same connection."""

    def __init__(self, house: House, seed: int) -> None:
        self._rng = rng = Random(seed)
        self._seed = seed
        self._record = Record(house, *drawn_listener(rng))
        self._watched = self._record.watched
        # After this many decisions in a row, later frames are decided in another turn.
        house.plane.decisions = rng.choice((0, DECISIONS_AT_ONCE - 3))
        self._asked: deque[BaseCommand] = deque(maxlen=12)

    def play(self) -> Played:
        rng, watched = self._rng, self._watched
        if rng.random() < 0.85:
            self._prologue()
        for _ in range(rng.randint(2, _MOST_STEPS)):
            if watched.over or watched.crashes:
                break
            rng.choice(_HAPPENINGS)(self)
        return self._record.played(self._seed)

    def _remember(self, frame: bytes) -> None:
        size = int.from_bytes(frame[4:8])
        try:
            asked = BaseCommand.FromString(frame[8 : 8 + size])
        except DecodeError:
            return
        if asked.type != BaseCommand.SEND:
            self._asked.append(asked)

    def _say(self, direction: Direction, *frames: bytes) -> None:
        chunk, rng = b"".join(frames), self._rng
        pieces = [chunk]
        if rng.random() < _PIECES and len(chunk) > 1:
            at = sorted(rng.randrange(1, len(chunk)) for _ in range(rng.randint(1, 3)))
            pieces = [chunk[a:b] for a, b in zip([0, *at], [*at, len(chunk)], strict=True)]
        step = self._record.say(direction, *pieces, number=len(frames))
        for frame in step.to_broker:
            self._remember(frame)

    # -- events ------------------------------------------------------------------------------

    def _prologue(self) -> None:
        """Open a producer and a consumer."""
        for id in (1, 2)[: self._rng.randint(1, 2)]:
            self._say(Direction.TO_BROKER, producer(id, request=100 + id))
            self._answered(BaseCommand.PRODUCER, 100 + id, (Action.PRODUCE, id))
        self._say(Direction.TO_BROKER, subscribe(1, request=110))
        self._answered(BaseCommand.SUBSCRIBE, 110, (Action.CONSUME, 1))
        self._asked.clear()  # all of it is answered, and a broker answers once

    def _answered(self, kind: int, request: int, party: tuple[Action, int]) -> None:
        if self._watched.over:
            return
        response = producer_success(request) if kind == BaseCommand.PRODUCER else success(request)
        self._record.opens(party)
        self._say(Direction.TO_CLIENT, to_session(self._watched.session, response))

    def broker_answers(self) -> None:
        """Answer any of the latest requests as a broker would."""
        if not self._asked:
            return
        at = self._rng.randrange(len(self._asked))
        asked = self._asked[at]
        del self._asked[at]
        described_by = BaseCommand.DESCRIPTOR.fields_by_number.get(asked.type)
        if described_by is None:
            return
        body = getattr(asked, described_by.name)
        request = getattr(body, "request_id", 0)
        if self._rng.random() < 0.15:
            self._say(Direction.TO_CLIENT, error(request))
        elif asked.type == BaseCommand.PRODUCER:
            self._answered(asked.type, request, (Action.PRODUCE, body.producer_id))
        elif asked.type == BaseCommand.SUBSCRIBE:
            self._answered(asked.type, request, (Action.CONSUME, body.consumer_id))
        else:
            self._say(Direction.TO_CLIENT, success(request))

    def client_says(self) -> None:
        """Send a frame, mostly one that no client writes."""
        self._say(Direction.TO_BROKER, hostile_frame(self._rng))

    def client_says_several(self) -> None:
        rng = self._rng
        frames = [hostile_frame(rng) if rng.random() < 0.3 else true_frame(rng) for _ in range(3)]
        self._say(Direction.TO_BROKER, *frames)

    def client_sends(self) -> None:
        """Send several SENDs in a chunk, mostly well-formed ones."""
        rng = self._rng
        id = rng.choice((1, 1, 1, 2, 3))
        frames = [send(id, sequence) for sequence in range(rng.randint(1, 6))]
        if rng.random() < 0.5:
            frames.insert(rng.randint(0, len(frames)), send(id, 9, num_messages=rng.randint(1, 9)))
        if rng.random() < 0.4:
            frames.insert(rng.randint(0, len(frames)), hostile_frame(rng, Kind.SEND))
        if rng.random() < 0.4:
            frames.insert(rng.randint(0, len(frames)), _hostile_batch(rng, id))
        self._say(Direction.TO_BROKER, *frames)

    def client_is_true(self) -> None:
        self._say(Direction.TO_BROKER, true_frame(self._rng))

    def broker_delivers(self) -> None:
        rng = self._rng
        frames = [message(rng.choice((1, 1, 2))) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.5:
            frames.append(message(1, tail(metadata(Source(rng.randbytes(40))), b"payload")))
        frames.append(receipt(1, 1))
        self._say(Direction.TO_CLIENT, *frames)

    def broker_is_odd(self) -> None:
        rng = self._rng
        self._say(Direction.TO_CLIENT, hostile_frame(rng, rng.choice(_KNOWN)))

    def _look(self) -> None:
        for frame in self._record.look(Direction.TO_BROKER).to_broker:
            self._remember(frame)

    def limits_change(self) -> None:
        rng = self._rng
        for admission in self._record.services.live:
            if rng.random() < 0.3:
                admission.hold()
            elif rng.random() < 0.6:
                self._watched.grant(admission, rng.choice((1, 2, 5, 1000)))
        self._look()

    def time_passes(self) -> None:
        self._watched.finish_jobs()
        self._watched.wait(self._rng.choice((0.1, 0.5, 1.1)))
        self._look()


def true_frame(rng: Random, kind: int | None = None) -> bytes:
    """Return a frame as clients write it, with any values."""
    of = rng.choice(_LOOKED_AT) if kind is None else kind
    if of == Kind.PRODUCER and rng.random() < 0.5:
        topic = any_name(rng)
        if _is_text(topic):
            return producer(rng.choice((1, 2, 3)), request=rng.randint(1, 9), topic=topic.decode())
    if of == Kind.CONNECT:
        of = Kind.PING
    body = b"".join(true_fields(rng, of))
    return framed(rng, command(of, body), rest(Source(rng.randbytes(24)), of), 0.0)


def hostile_frame(rng: Random, kind: int | None = None) -> bytes:
    """Return a frame with a feature that clients do not write."""
    of = _any_kind(rng) if kind is None else kind
    fields = true_fields(rng, of)
    body, chance = b"".join(fields), rng.random()
    if chance < 0.65:
        body = mutated(rng, fields, descriptor_of(of), true_fields(rng, of))
    whole, behind = command(of, body), rest(Source(rng.randbytes(24)), of)
    if chance > 0.6:
        whole = odd_command(rng, of, body)
    elif chance > 0.52:
        whole, missing = spilled(rng, of, body)
        behind = missing + (behind if rng.random() < 0.5 else b"")
    elif rng.random() < 0.05:
        behind = body + behind
    return framed(rng, whole, behind, 0.03)


def _any_kind(rng: Random) -> int:
    """Return a kind: mostly one that the gateway reads, at times one that it does not."""
    chance = rng.random()
    if chance < 0.6:
        return rng.choice(_LOOKED_AT)
    return rng.choice(_PASSING) if chance < 0.8 else rng.choice(_KNOWN)


def _hostile_batch(rng: Random, id: int) -> bytes:
    """Return a well-formed SEND with metadata that can be read in several ways."""
    messages = rng.choice((1, 1, 2, 5, 1000, 1 << 31))
    about = {"num_messages_in_batch": messages & (1 << 31) - 1} if messages > 1 else {}
    fields = split_fields(metadata_of(7, **about))
    others = [number(11, rng.choice((1, 2, 1000, 1 << 32, (1 << 32) + 2)), rng.choice((0, 5, 10)))]
    about_it = mutated(rng, fields, MessageMetadata.DESCRIPTOR, others)
    large = data(15, bytes(5000))
    entry = rng.choice((None, None, None, b"", number(1, 1), number(2, 1 << 40), large))
    length = len(about_it) + rng.choice((0, 0, 0, 0, 1, -1, 3))
    behind = tail(about_it, b"payload", entry=entry, length=max(0, length))
    if rng.random() < 0.1:
        behind = behind[:-1]  # its checksum belongs to another one
    said = number(1, id) + number(2, 7) + (number(3, messages) if messages > 1 else b"")
    return framed(rng, command(Kind.SEND, said), behind, 0.0)


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


_HAPPENINGS: tuple[Callable[[Player], None], ...] = (
    *(Player.client_says,) * 8,
    *(Player.client_says_several,) * 2,
    *(Player.client_sends,) * 4,
    *(Player.client_is_true,) * 3,
    *(Player.broker_answers,) * 4,
    *(Player.broker_delivers,) * 2,
    Player.broker_is_odd,
    Player.limits_change,
    Player.time_passes,
)
