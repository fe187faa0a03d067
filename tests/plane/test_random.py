"""Random runs: frames of all kinds in both directions, cut anywhere, with peers that stall.

In each run, each peer receives whole frames, each frame once, in the order of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.contract import (
    DROP,
    FORWARD,
    Direction,
    Drop,
    Effects,
    Forward,
    Hold,
    Inject,
    Pause,
    Replace,
)
from tests.support.examples import examples
from tests.support.tls import tls_sockets

from .harness import KIB, FakeJob, Opened, Plane, unix_sockets
from .protocol import HEAD, STOP, FakeSession, Numbered, counted, frames, passing, stop

TO_BROKER, TO_CLIENT = Direction

# The session's decision on a stop frame, by the first byte of its body; the rest is a number.
FORWARDED, REPLACED, DROPPED, INJECTS, ANSWERED, ASKS, PAUSES, PAUSES_BACK = b"frdiabpP"

Frame = tuple[str, int, int]  # kind, account or decision, size

directions = st.sampled_from(list(Direction))
ids = st.integers(0, 2)
nothing = st.just(0)

passings = st.tuples(st.just("pass"), nothing, st.sampled_from([0, 10, 500, 3000]))
accounts = st.tuples(st.just("counted"), ids, st.sampled_from([0, 10, 300]))
decisions = st.tuples(
    st.just("stop"), st.sampled_from(list(b"frdiabpP")), st.sampled_from([0, 10, 100, 80_000])
)
to_broker = st.lists(st.one_of(passings, accounts, decisions), min_size=5, max_size=30)
to_client = st.lists(st.one_of(passings, decisions), min_size=5, max_size=30)

say = st.tuples(st.just("say"), directions, st.sampled_from([1, 4, 30, 300, 2000, 90_000]))
hear = st.tuples(st.just("hear"), directions, st.sampled_from([100, 10_000, 200_000]))
grant = st.tuples(st.just("grant"), ids, st.integers(1, 3))
wait = st.tuples(st.just("wait"), nothing, st.integers(1, 3))
resume = st.tuples(st.just("resume"), nothing, nothing)
actions = st.lists(st.one_of(say, say, say, hear, grant, wait, resume), min_size=20, max_size=100)


class Model(FakeSession):
    """Decides by the content of a frame, and records what each peer must receive."""

    def __init__(self, plane: Plane) -> None:
        super().__init__()
        self._plane = plane
        self._tokens = count()
        self.asked: dict[int, tuple[Direction, bytes]] = {}
        self.injected: tuple[list[bytes], list[bytes]] = ([], [])
        self.response = self._response
        self.resumption = self._resumption

    def _response(self, direction: Direction, frame: bytes) -> Effects:
        if HEAD.unpack_from(frame)[1] != STOP:
            account = self.accounts[frame[5]]
            return (Hold(account),)
        match frame[5]:
            case 0x66:  # FORWARDED
                return FORWARD
            case 0x72:  # REPLACED
                return (Replace(replaced(frame)),)
            case 0x64:  # DROPPED
                return DROP
            case 0x69:  # INJECTS
                return Forward(), self._inject(direction, frame)
            case 0x61:  # ANSWERED
                return Drop(), self._inject(direction.opposite, frame)
            case 0x62:  # ASKS
                token = next(self._tokens)
                self.asked[token] = direction, frame
                return Drop(), self.start(FakeJob(), token)
            case other:
                way = direction if other == PAUSES else direction.opposite
                return Forward(), Pause(way, self._plane.clock() + 2)

    def _inject(self, direction: Direction, frame: bytes) -> Inject:
        ours = passing(b"!" + frame[6:])
        self.injected[direction].append(ours)
        return Inject(direction, ours)

    def _resumption(self, token: int, result: object) -> Effects:
        return (self._inject(*self.asked.pop(token)),)


def replaced(frame: bytes) -> bytes:
    """Return the replacement of a frame."""
    return passing(b"R" + frame[6:])


def built(specs: list[Frame], numbers: Iterator[int]) -> list[bytes]:
    """Return the frames of one direction, each with its own number."""
    return [
        _frame(kind, which, next(numbers).to_bytes(4) + b"x" * size) for kind, which, size in specs
    ]


def _frame(kind: str, which: int, body: bytes) -> bytes:
    match kind:
        case "pass":
            return passing(b"." + body)
        case "counted":
            return counted(which, body)
        case _:
            return stop(bytes([which]) + body)


def expected(said: list[bytes]) -> list[bytes]:
    """Return the frames that are forwarded, in order."""
    told = []
    for frame in said:
        decision = frame[5] if frame[4] == STOP else FORWARDED
        if decision == REPLACED:
            told.append(replaced(frame))
        elif decision not in (DROPPED, ANSWERED, ASKS):
            told.append(frame)
    return told


ROUNDS_OF_A_RECORD = 8
"""Rounds in which a record of 16 KiB passes socket buffers of 4 KiB."""


class Run:
    """One random course of a pair."""

    def __init__(
        self, plane: Plane, said: tuple[list[bytes], list[bytes]], sockets: Callable[[], Any]
    ) -> None:
        self.plane = plane
        self.session = Model(plane)
        self.said = said
        for id in range(3):
            self.session.account(id).hold()
        self.pair: Opened = plane.open(self.session, sockets, send_buffer=4 * KIB)
        self._unsaid = [b"".join(frames) for frames in said]

    def say(self, direction: Direction, size: int) -> None:
        """Send this many bytes, or as many as the socket takes."""
        speaker, _ = self.pair.far(direction)
        try:
            sent = speaker.sock.send(self._unsaid[direction][:size])
        except BlockingIOError:
            return
        self._unsaid[direction] = self._unsaid[direction][sent:]

    def resume(self) -> None:
        """Pass the results of all jobs that run."""
        for token in tuple(self.session.asked):
            self.plane.reactor.resume(self.pair.pair, Numbered(self.session, token), b"")

    def grant(self, id: int, messages: int) -> None:
        """Grant allowance for some messages."""
        account = self.session.accounts[id]
        self.plane.reactor.grant(account, messages, 1 << 40)

    def act(self, action: tuple[str, int, int]) -> None:
        """Carry out one random event."""
        name, which, size = action
        match name:
            case "say":
                self.say(Direction(which), size)
            case "hear":
                self.pair.far(Direction(which))[1].hear(size)
            case "grant":
                self.grant(which, size)
            case "wait":
                self.plane.after(size)
            case "resume":
                self.resume()
        self.plane.turn()
        assert self.plane.memory.used == self.pair.pair.kept

    def finish(self) -> None:
        """Send, receive, grant and resume until nothing changes: a TLS record is readable only when
        all of it has come, which takes several rounds."""
        before: object = None
        steady = 0
        while steady < ROUNDS_OF_A_RECORD:
            steady = steady + 1 if before == (before := self._progress()) else 0
            for direction in Direction:
                self.say(direction, 1 << 30)
            self.resume()
            for id in range(3):
                self.grant(id, 1 << 30)
            self.plane.after(2)
            for direction in Direction:
                self.pair.far(direction)[1].hear()
            self.plane.turn()

    def _progress(self) -> object:
        decided, asked = len(self.session.decided), len(self.session.asked)
        return decided, asked, [*map(len, self._unsaid)], [*map(len, self._heard())]

    def _heard(self) -> tuple[bytes, bytes]:
        return self.pair.broker.hear(), self.pair.client.hear()

    def check(self) -> None:
        """Check that each peer received what it must."""
        assert self.plane.hooks.ends == []
        for direction, heard in zip(Direction, self._heard(), strict=True):
            told = frames(heard)
            ours = self.session.injected[direction]
            assert [frame for frame in told if frame[5:6] == b"!"] == ours
            theirs = [frame for frame in told if frame[5:6] != b"!"]
            wanted = expected(self.said[direction])
            for id in range(3):
                head = counted(id)[4:]
                assert of(theirs, head) == of(wanted, head), "an account's frames keep their order"
            heads = tuple(counted(id)[4:] for id in range(3))
            assert without(theirs, heads) == without(wanted, heads)
        assert self.plane.memory.used == 0


def of(frames: list[bytes], head: bytes) -> list[bytes]:
    """Return the frames of one account."""
    return [frame for frame in frames if frame[4:6] == head]


def without(frames: list[bytes], heads: tuple[bytes, ...]) -> list[bytes]:
    """Return the frames of no account."""
    return [frame for frame in frames if frame[4:6] not in heads]


@pytest.mark.parametrize("sockets", [unix_sockets, tls_sockets])
@examples(150)
@given(to_broker=to_broker, to_client=to_client, actions=actions)
def test_each_peer_is_told_whole_frames_once_and_in_order(
    sockets: Callable[[], Any],
    to_broker: list[Frame],
    to_client: list[Frame],
    actions: list[tuple[str, int, int]],
) -> None:
    numbers = count()
    plane = Plane()
    run = Run(plane, (built(to_broker, numbers), built(to_client, numbers)), sockets)
    for action in actions:
        run.act(action)
    run.finish()
    run.check()
    plane.close()
