"""Legs: a peer's stream while a conversation uses it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from gateway.front.leg import LINGER, Leg
from gateway.plane.share import UNCLAIMED, Share
from gateway.wire.contract import Denial, Refusal
from tests.plane.harness import tcp_sockets, unix_sockets
from tests.plane.protocol import passing
from tests.support.tls import tls_sockets

from .fakes import Talker, frame_length, hello

BOUND = 1000


class Ends:
    """A leg and its peer."""

    def __init__(self, near: Any, far: Any) -> None:
        near.setblocking(False)
        self.leg = Leg(near, frame_length, BOUND)
        self.peer = Talker(far)

    def close(self) -> None:
        self.leg.close()
        self.peer.close()


@pytest.fixture(params=[unix_sockets, tcp_sockets, tls_sockets])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    ends = Ends(*request.param())
    yield ends
    ends.close()


def soon() -> float:
    """Return a deadline that no test reaches in real time."""
    return trio.current_time() + 10


def refusal(received: bytes | Denial) -> Refusal:
    """Return the refusal that came in place of a frame."""
    assert isinstance(received, Denial)
    return received.refusal


async def test_a_frame_is_received(ends: Ends) -> None:
    ends.peer.say(hello(b"x"))
    assert await ends.leg.receive(soon()) == hello(b"x")
    assert ends.leg.received == b""


async def test_a_frame_that_arrives_in_pieces_is_received(ends: Ends) -> None:
    async def say() -> None:
        for byte in hello(b"x" * 20):
            await trio.testing.wait_all_tasks_blocked()
            ends.peer.say(bytes([byte]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(say)
        assert await ends.leg.receive(soon()) == hello(b"x" * 20)


async def test_bytes_behind_a_frame_are_kept(ends: Ends) -> None:
    ends.peer.say(hello(b"1") + hello(b"2") + hello(b"3")[:3])
    assert await ends.leg.receive(soon()) == hello(b"1")
    assert await ends.leg.receive(soon()) == hello(b"2")
    assert ends.leg.received == hello(b"3")[:3]


@pytest.mark.parametrize("size", [BOUND - 1, BOUND])
async def test_a_frame_within_the_bound_is_received(ends: Ends, size: int) -> None:
    said = hello(b"x" * (size - len(hello())))
    ends.peer.say(said)
    assert await ends.leg.receive(soon()) == said


async def test_a_frame_beyond_the_bound_is_refused_at_its_first_bytes(ends: Ends) -> None:
    ends.peer.say(hello(b"x" * (BOUND + 1 - len(hello())))[:5])
    assert refusal(await ends.leg.receive(soon())) is Refusal.TOO_MANY


async def test_at_most_a_small_frame_is_kept_behind_a_frame(ends: Ends) -> None:
    ends.peer.say(hello(b"x" * 900)[:800])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.leg.receive, soon())
        await trio.testing.wait_all_tasks_blocked()
        assert ends.peer.sock.send(b"x" * 100 + passing(b"y" * 150_000)) > 1000
    assert len(ends.leg.received) <= UNCLAIMED


@pytest.mark.parametrize("said", [b"", hello()[:3], hello(b"x" * 50)[:20]])
async def test_the_end_of_the_stream_is_a_denial(ends: Ends, said: bytes) -> None:
    ends.peer.say(said) if said else None
    ends.peer.close()
    assert refusal(await ends.leg.receive(soon())) is Refusal.CLOSED


async def test_a_reset_is_a_denial() -> None:
    ends = Ends(*tcp_sockets())
    ends.peer.reset()
    assert refusal(await ends.leg.receive(soon())) is Refusal.CLOSED
    ends.close()


async def test_frames_before_the_end_of_the_stream_are_received(ends: Ends) -> None:
    ends.peer.say(hello())
    ends.peer.close()
    assert await ends.leg.receive(soon()) == hello()
    assert refusal(await ends.leg.receive(soon())) is Refusal.CLOSED


@pytest.mark.parametrize("said", [b"", hello(b"x" * 50)[:20]])
async def test_a_silent_peer_is_denied_at_the_deadline(
    ends: Ends, said: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    ends.peer.say(said) if said else None
    assert refusal(await ends.leg.receive(soon())) is Refusal.TIMEOUT


async def test_a_peer_that_sends_slowly_is_denied_at_the_deadline(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    """The deadline holds for the whole frame, not for each byte."""

    async def drip() -> None:
        for byte in hello(b"x" * 500):
            await trio.sleep(1)
            ends.peer.say(bytes([byte]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drip)
        assert refusal(await ends.leg.receive(soon())) is Refusal.TIMEOUT
        nursery.cancel_scope.cancel()
    assert len(ends.leg.received) < 12


async def test_a_deadline_in_the_past_is_a_denial(ends: Ends) -> None:
    assert refusal(await ends.leg.receive(trio.current_time() - 1)) is Refusal.TIMEOUT


async def test_bytes_are_transmitted(ends: Ends) -> None:
    await ends.leg.transmit(hello(b"x"), soon())
    assert await ends.peer.hear(6) == hello(b"x")


async def test_transmit_waits_for_a_slow_peer(ends: Ends) -> None:
    said = bytes(range(256)) * 20_000
    heard: list[bytes] = []

    async def hear() -> None:
        heard.append(await ends.peer.hear(len(said)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.leg.transmit, said, soon())
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(hear)
    assert heard == [said]


async def test_transmit_ends_at_the_deadline_if_the_peer_does_not_read(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    await ends.leg.transmit(b"x" * 10_000_000, soon())
    assert len(await _all(ends)) < 10_000_000


async def _all(ends: Ends) -> bytes:
    ends.leg.close()
    return await ends.peer.hear_all()


async def test_a_closed_peer_is_noticed_at_the_next_receive(ends: Ends) -> None:
    ends.peer.close()
    for _ in range(3):
        await ends.leg.transmit(hello(), soon())
        await trio.lowlevel.checkpoint()
    assert refusal(await ends.leg.receive(soon())) is Refusal.CLOSED


async def test_a_peer_is_alive_until_it_closes(ends: Ends) -> None:
    assert ends.leg.is_alive()
    ends.peer.say(b"x")
    assert ends.leg.is_alive()
    assert await ends.peer.hear(0) == b""
    ends.leg.stream.recv(1)
    ends.peer.close()
    await trio.sleep(0.01)
    assert not ends.leg.is_alive()


async def test_a_peer_that_was_reset_is_not_alive() -> None:
    ends = Ends(*tcp_sockets())
    ends.peer.reset()
    assert not ends.leg.is_alive()
    ends.close()


async def test_a_farewell_is_read_despite_unread_bytes(ends: Ends) -> None:
    """Closing with unread bytes would send a reset, which may overtake the farewell."""
    ends.peer.say(b"unread" * 1000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.leg.close_with, passing(b"bye"))
        await trio.testing.wait_all_tasks_blocked()
        ends.peer.say(b"more" * 1000)
        await trio.testing.wait_all_tasks_blocked()
        assert await ends.peer.hear_all() == passing(b"bye")
        ends.peer.close()
    assert ends.leg.stream.fileno() == -1


async def test_a_peer_that_does_not_read_its_farewell_is_closed(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    before = trio.current_time()
    await ends.leg.close_with(passing(b"bye"))
    assert trio.current_time() - before == pytest.approx(LINGER)
    assert ends.leg.stream.fileno() == -1


async def test_without_a_farewell_the_leg_closes_at_once(ends: Ends) -> None:
    await ends.leg.close_with(b"")
    assert ends.leg.stream.fileno() == -1


async def test_a_farewell_to_a_closed_peer_ends_at_once(ends: Ends) -> None:
    ends.peer.close()
    await ends.leg.close_with(passing(b"bye"))
    assert ends.leg.stream.fileno() == -1


async def test_a_farewell_can_be_cancelled(ends: Ends) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.leg.close_with, passing(b"bye"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert ends.leg.stream.fileno() == -1


class Chatterbox:
    """A socket whose peer sends without end."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.open = True
        self._near, far = socket.socketpair()
        far.close()  # a socket whose peer is gone is readable for ever

    def fileno(self) -> int:
        return self._near.fileno()

    def recv(self, size: int, flags: int = 0) -> bytes:
        return self._said

    def send(self, data: bytes) -> int:
        return len(data)

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        self.open = False
        self._near.close()


async def test_a_peer_that_sends_without_end_does_not_block_other_tasks() -> None:
    sock = Chatterbox(passing(b"blah"))
    leg = Leg(sock, frame_length, BOUND)  # type: ignore[arg-type]
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leg.close_with, passing(b"bye"))
            await trio.lowlevel.checkpoint()
            scope.cancel()
    assert not sock.open


# -- memory for large frames -----------------------------------------------------------------

LARGE = hello(b"x" * 2 * UNCLAIMED)


def sharing(share: Share, host: str = "") -> Ends:
    """Return a leg that claims memory of this share."""
    near, far = unix_sockets()
    ends = Ends(near, far)
    ends.leg = Leg(near, frame_length, 8 * UNCLAIMED, share, host)
    return ends


async def test_a_large_frame_has_memory_until_the_leg_is_released() -> None:
    share = Share(4 * UNCLAIMED)
    ends = sharing(share)
    ends.peer.say(LARGE)
    assert await ends.leg.receive(soon()) == LARGE
    assert share.taken == len(LARGE)
    ends.leg.release()
    assert share.taken == 0
    ends.close()


async def test_a_small_frame_needs_no_claim() -> None:
    share = Share(4 * UNCLAIMED)
    taken = share.claim("", 4 * UNCLAIMED, lambda: None)
    ends = sharing(share)
    small = hello(b"x" * (UNCLAIMED - len(hello())))
    ends.peer.say(small)
    assert await ends.leg.receive(soon()) == small
    share.release(taken)
    ends.close()


async def test_a_large_frame_is_not_read_before_its_claim_is_granted() -> None:
    share = Share(4 * UNCLAIMED)
    taken = share.claim("", 4 * UNCLAIMED, lambda: None)
    ends = sharing(share)
    ends.peer.say(LARGE)
    received: list[bytes | Denial] = []

    async def receive() -> None:
        received.append(await ends.leg.receive(soon()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        assert len(ends.leg.received) == UNCLAIMED
        share.release(taken)
    assert received == [LARGE]
    ends.close()
    assert share.taken == 0


async def test_a_claim_that_is_not_granted_in_time_is_a_denial(
    autojump_clock: trio.testing.MockClock,
) -> None:
    share = Share(4 * UNCLAIMED)
    taken = share.claim("", 4 * UNCLAIMED, lambda: None)
    ends = sharing(share)
    ends.peer.say(LARGE)
    assert refusal(await ends.leg.receive(soon())) is Refusal.TIMEOUT
    ends.close()
    share.release(taken)
    assert (share.taken, share.waiting) == (0, 0)


async def test_a_larger_frame_extends_the_claim_and_a_smaller_one_uses_it() -> None:
    share = Share(8 * UNCLAIMED)
    ends = sharing(share)
    larger = hello(b"x" * 3 * UNCLAIMED)
    for frame, taken in ((LARGE, len(LARGE)), (larger, len(larger)), (LARGE, len(larger))):
        ends.peer.say(frame)
        assert await ends.leg.receive(soon()) == frame
        assert share.taken == taken
    ends.close()
    assert share.taken == 0


async def test_many_incomplete_large_frames_keep_little_memory() -> None:
    """All legs together keep no more than the share, and an unclaimed part for each leg."""
    share = Share(8 * UNCLAIMED)
    several = [sharing(share) for _ in range(100)]
    for ends in several:
        ends.peer.say(LARGE[:-1])
    async with trio.open_nursery() as nursery:
        for ends in several:
            nursery.start_soon(ends.leg.receive, soon())
        await trio.testing.wait_all_tasks_blocked()
        kept = sum(len(ends.leg.received) for ends in several)
        nursery.cancel_scope.cancel()
    assert kept <= share.size + 100 * UNCLAIMED
    for ends in several:
        ends.close()
    assert (share.taken, share.waiting) == (0, 0)
