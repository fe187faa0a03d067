"""Two sessions of TubeMQ on the same bytes: one reads replies with the pure code, one with the
compiled walker.

Clients and brokers say the same to both, in the same pieces. What peers get, what is counted, and
where partitions and groups are must not differ. Bytes move as the plane moves them, so the walker
passes frames without the scanner.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from gateway.errors import PeerError
from gateway.wire.services import Services
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.bringing import Bringing
from gateway.wire.tubemq.directions import directions
from gateway.wire.tubemq.frames import BLOCK, framed, whole
from gateway.wire.tubemq.in_flight import InFlight
from gateway.wire.tubemq.replies import ReplyScanner
from gateway.wire.tubemq.requests import RequestScanner
from tests.playbooks_tubemq.script import Tube, TubeServices, ask, tell
from tests.unit.wire.tubemq.frames import in_blocks_of

TOPICS = ("a", "b", "longer")

SIZES = (0, 1, 100, 127, 128, 1000, 1000, BLOCK - 20, BLOCK, 20_000)
"""Bytes of messages."""

_COUNTS = ("messages", "surplus", "bytes", "receipts", "errors")


def _pure(
    largest: tuple[int, int], in_flight: InFlight, services: Services
) -> tuple[RequestScanner, ReplyScanner]:
    return (
        RequestScanner(largest[0], in_flight),
        ReplyScanner(largest[1], in_flight, Bringing(in_flight, services)),
    )


class Twins:
    """A pair whose scanners are pure, and one whose are compiled. `is_over`: a peer has violated
    the protocol."""

    def __init__(self, noise: random.Random) -> None:
        self._noise = noise
        self.plays: list[Tube] = []
        for make in (_pure, directions):
            with patch("gateway.wire.tubemq.session.directions", make):
                self.plays.append(Tube(TubeServices(), node=1))
        self.is_over = False
        self._serial = 0
        self._asked: list[tuple[int, int]] = []  # method and serial number
        self._later = b""  # the rest of what the broker says

    def step(self) -> int:
        """Have a client ask, or a broker answer, in both pairs. Return the number of new frames."""
        count = self._ask() if self._noise.random() < 0.5 else self._response()
        pure, compiled = map(_state, self.plays)
        assert pure == compiled
        return count

    def _both(self, act: Callable[[Tube], bytes]) -> None:
        pure, compiled = (self._outcome(act, play) for play in self.plays)
        if self.is_over:  # the walker may have passed what precedes a violation
            assert isinstance(pure, PeerError) == isinstance(compiled, PeerError)
        else:
            assert pure == compiled

    def _outcome(self, act: Callable[[Tube], bytes], play: Tube) -> object:
        try:
            return act(play)
        except PeerError as error:
            self.is_over = True
            return error

    def _ask(self) -> int:
        count = self._noise.randrange(1, 8)
        said = b"".join(self._request() for _ in range(count))
        self._both(lambda play: play.client(said))
        return count

    def _request(self) -> bytes:
        noise = self._noise
        self._serial += 1
        topic = noise.choice(TOPICS)
        names: dict[str, Any]
        if noise.random() < 0.8:
            self._asked.append((m.GET_MESSAGES, self._serial))
            group = noise.choice("gh")
            names = {"clientId": "c", "groupName": group, "topicName": topic}
            return ask(m.GET_MESSAGES, self._serial, partitionId=1, **names)
        self._asked.append((m.SEND_MESSAGE, self._serial))
        names = {"clientId": "p", "topicName": topic}
        numbers = {"partitionId": 1, "flag": 0, "checkSum": -1, "sentAddr": 1}
        return ask(m.SEND_MESSAGE, self._serial, data=b"12", **names, **numbers)

    def _response(self) -> int:
        noise = self._noise
        count = noise.randrange(len(self._asked) + 1)
        said = self._later + b"".join(self._reply(*it) for it in self._asked[:count])
        del self._asked[:count]
        cut = len(said) if noise.random() < 0.5 else noise.randrange(len(said) + 1)
        said, self._later = said[:cut], said[cut:]
        longest = noise.choice((len(said), len(said), 5000, 300, 20))
        while said and not self.is_over:
            piece, said = said[:longest], said[longest:]
            self._both(lambda play, piece=piece: play.broker(piece))  # type: ignore[misc]
        return count

    def _reply(self, method: int, serial: int) -> bytes:
        noise = self._noise
        if method == m.SEND_MESSAGE:
            id = noise.getrandbits(40)
            return tell(method, serial, success=True, errCode=200, errMsg=str(id), messageId=id)
        if noise.random() < 0.1:
            return tell(method, serial, success=False, errCode=404, errMsg="none")
        numbers = {"currOffset": noise.getrandbits(40), "maxOffset": noise.getrandbits(40)}
        some = {name: it for name, it in numbers.items() if noise.random() < 0.8}
        text = noise.choice(("OK!",) * 9 + ("fine",))
        brought = [self._message() for _ in range(noise.choice((0, 1, 2, 10, 30)))]
        ok = {"success": True, "errCode": 200, "errMsg": text}
        reply = tell(method, serial, **ok, messages=brought, **some)
        if noise.random() < 0.02:
            reply = framed(serial, whole(reply).envelope + b"\0")
        if noise.random() < 0.02:
            reply = in_blocks_of(noise.choice((50, BLOCK - 1)), reply)
        return self._flawed(reply) if noise.random() < 0.03 else reply

    def _message(self) -> dict[str, object]:
        noise = self._noise
        number = noise.getrandbits(noise.randrange(1, 63))
        data = bytes(noise.choice(SIZES)) if noise.random() < 0.9 else noise.randbytes(30)
        return {"messageId": number, "checkSum": -1, "payLoadData": data, "flag": number % 1000}

    def _flawed(self, frame: bytes) -> bytes:
        """Return a frame with another byte, most often in its first ones."""
        flawed = bytearray(frame)
        most = self._noise.choice((100, 100, len(frame)))
        flawed[self._noise.randrange(min(most, len(frame)))] ^= 1 << self._noise.randrange(8)
        return bytes(flawed)


def _state(play: Tube) -> tuple[object, ...]:
    """Return what can be seen of a pair."""
    counts = [tuple(getattr(it, name) for name in _COUNTS) for it in play.services.admitted]
    return counts, sorted(play.services.progress.ends()), play.ended, play.is_waiting


def run(frames: int, seed: int) -> int:
    """Compare the twins on so many frames. Return how many there were."""
    noise = random.Random(seed)
    done = 0
    while done < frames:
        twins = Twins(noise)
        for _ in range(noise.randrange(5, 100)):
            if twins.is_over:
                break
            done += twins.step()
    return done
