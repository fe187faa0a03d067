"""Conversations: steps are carried out, and their results returned."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Generator, Iterator

import pytest
import trio
import trio.lowlevel
import trio.testing

from gateway.errors import PeerError
from gateway.front.conversation import Conversation, Reach
from gateway.front.leg import Leg
from gateway.listening.openings import Openings
from gateway.plane.share import UNCLAIMED, Share
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Direction,
    Peer,
    Principal,
    Receive,
    Refusal,
    Settle,
    Step,
    StepResult,
    Transmit,
    Wait,
)
from tests.plane.protocol import passing

from .fakes import NO_BROKER, Talker, frame_length, hello, welcome
from .test_leg import Chatterbox

Steps = Generator[Step, StepResult, object]
Pairs = Generator[Step, StepResult, tuple[StepResult, StepResult]]


class Ends:
    """Legs and their peers. `dialled`: targets that the conversation dialled."""

    def __init__(self) -> None:
        self.legs: list[Leg] = []
        self.peers: list[Talker] = []
        self.dialled: list[Address | None] = []
        self.denial: Denial | None = None
        self.client = self.leg()

    def leg(self) -> Leg:
        """Return a new leg, which has a peer."""
        near, far = socket.socketpair()
        near.setblocking(False)
        self.legs.append(Leg(near, frame_length, 1000))
        self.peers.append(Talker(far))
        return self.legs[-1]

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """See `Reach`."""
        self.dialled.append(target)
        return self.denial or (self.leg(), Dialled(target or Address("any", 1)))

    def conversation(self, deadline: float = 10.0) -> Conversation:
        """Return a conversation with the client's leg. `deadline`: seconds from now."""
        return Conversation(trio.current_time() + deadline, self.reach, self.client)

    def close(self) -> None:
        for leg in self.legs:
            leg.close()
        for peer in self.peers:
            peer.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close()


async def test_run_returns_the_value_of_the_conversation(ends: Ends) -> None:
    def steps() -> Steps:
        yield from ()
        return "outcome"

    assert await ends.conversation().run(steps()) == "outcome"


async def test_frames_are_received_and_bytes_transmitted(ends: Ends) -> None:
    def steps() -> Steps:
        said = yield Receive(Peer.CLIENT)
        nothing = yield Transmit(Peer.CLIENT, welcome())
        return said, nothing

    ends.peers[0].say(hello())
    assert await ends.conversation().run(steps()) == (hello(), None)
    assert await ends.peers[0].hear(5) == welcome()


async def test_dialling_connects_the_conversation_to_a_broker(ends: Ends) -> None:
    target = Address("broker", 1)

    def steps() -> Steps:
        dialled = yield Dial(target)
        yield Transmit(Peer.BROKER, hello())
        return dialled, (yield Receive(Peer.BROKER))

    async def response() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert await ends.peers[1].hear(5) == hello()
        ends.peers[1].say(welcome())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(response)
        conversation = ends.conversation()
        assert await conversation.run(steps()) == (Dialled(target), welcome())
    assert ends.dialled == [target]
    assert conversation.reached == [ends.legs[1]]


async def test_a_second_dial_replaces_the_broker(ends: Ends) -> None:
    def steps() -> Steps:
        yield Dial(Address("first", 1))
        yield Dial(Address("second", 1))
        yield Transmit(Peer.BROKER, hello())
        return None

    conversation = ends.conversation()
    await conversation.run(steps())
    assert conversation.reached == ends.legs[2:]
    assert ends.legs[1].stream.fileno() == -1
    assert await ends.peers[2].hear(5) == hello()


async def test_a_failed_dial_leaves_no_broker_to_receive_from(ends: Ends) -> None:
    ends.denial = NO_BROKER

    def steps() -> Pairs:
        dialled = yield Dial()
        yield Transmit(Peer.BROKER, b"never sent")
        return dialled, (yield Receive(Peer.BROKER))

    conversation = ends.conversation()
    dialled, received = await conversation.run(steps())
    assert dialled == NO_BROKER
    assert isinstance(received, Denial)
    assert received.refusal is Refusal.CLOSED
    assert conversation.reached == []


async def test_all_steps_share_one_deadline(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    def steps() -> Pairs:
        first = yield Receive(Peer.CLIENT)
        second = yield Receive(Peer.CLIENT)
        return first, second

    async def say() -> None:
        await trio.sleep(9)
        ends.peers[0].say(hello())
        await trio.sleep(9)
        ends.peers[0].say(hello())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(say)
        first, second = await ends.conversation(10).run(steps())
        nursery.cancel_scope.cancel()
    assert first == hello()
    assert isinstance(second, Denial)
    assert second.refusal is Refusal.TIMEOUT


@pytest.mark.parametrize(("seconds", "passed"), [(3.0, 3.0), (30.0, 10.0)])
async def test_a_wait_ends_at_the_deadline(
    ends: Ends, autojump_clock: trio.testing.MockClock, seconds: float, passed: float
) -> None:
    def steps() -> Steps:
        return (yield Wait(seconds))

    began = trio.current_time()
    assert await ends.conversation(deadline=10.0).run(steps()) is None
    assert trio.current_time() - began == pytest.approx(passed)


async def test_errors_of_the_conversation_are_raised_to_the_caller(ends: Ends) -> None:
    def steps() -> Steps:
        yield Receive(Peer.CLIENT)
        raise PeerError("no")

    ends.peers[0].say(hello())
    with pytest.raises(PeerError, match="no"):
        await ends.conversation().run(steps())


async def test_a_watch_gets_all_received_frames(ends: Ends) -> None:
    watched: list[tuple[Direction, bytes]] = []
    reach: Reach = ends.reach
    conversation = Conversation(
        trio.current_time() + 10,
        reach,
        ends.client,
        lambda *frame: watched.append(frame),
    )

    def steps() -> Steps:
        yield Receive(Peer.CLIENT)
        yield Dial()
        ends.peers[1].say(welcome())
        yield Receive(Peer.BROKER)
        ends.peers[0].close()
        yield Receive(Peer.CLIENT)
        return None

    ends.peers[0].say(hello())
    await conversation.run(steps())
    assert watched == [(Direction.TO_BROKER, hello()), (Direction.TO_CLIENT, welcome())]


async def test_a_peer_that_sends_without_end_does_not_block_other_tasks(ends: Ends) -> None:
    """A conversation may ignore frames, so a hostile peer may send ignored frames only."""
    sock = Chatterbox(passing(b"blah"))
    chatterbox = Leg(sock, frame_length, 1000)  # type: ignore[arg-type]

    def steps() -> Steps:
        while True:
            yield Receive(Peer.CLIENT)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            conversation = Conversation(trio.current_time() + 10, ends.reach, chatterbox)
            nursery.start_soon(conversation.run, steps())
            await trio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught
    sock.close()


async def test_a_finished_conversation_gives_its_memory_back(ends: Ends) -> None:
    """Both legs give their memory back: the broker's leg may be kept for another chase."""
    share = Share(1 << 20)
    for leg in (ends.client, ends.leg()):
        leg._share = share
        leg._bound = 1 << 20
    large = hello(b"x" * 2 * UNCLAIMED)

    async def reach(target: Address | None) -> tuple[Leg, Dialled] | Denial:
        return ends.legs[1], Dialled(Address("any", 1))

    def steps() -> Steps:
        yield Receive(Peer.CLIENT)
        yield Dial(None)
        yield Receive(Peer.BROKER)
        assert share.taken == 2 * len(large)
        return "outcome"

    for peer in ends.peers:
        peer.say(large)
    conversation = Conversation(trio.current_time() + 10, reach, ends.client)
    assert await conversation.run(steps()) == "outcome"
    assert share.taken == 0


# -- answers about the client ------------------------------------------------------------------

ALICE = Principal("alice", verified=True)
NOBODY = Denial(Refusal.UNAUTHENTICATED, "nobody")


def settling(response: Callable[[], Awaitable[Principal | Denial]]) -> Steps:
    return (yield Settle(response))


async def for_ever() -> Principal:
    await trio.sleep_forever()


@pytest.mark.parametrize("found", [ALICE, NOBODY])
async def test_an_answer_about_the_client_is_awaited(
    ends: Ends, autojump_clock: trio.testing.MockClock, found: Principal | Denial
) -> None:
    async def response() -> Principal | Denial:
        await trio.sleep(9)
        return found

    assert await ends.conversation(10).run(settling(response)) == found


async def test_an_answer_that_takes_too_long_is_a_denial(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    denial = await ends.conversation(10).run(settling(for_ever))
    assert trio.current_time() - began == pytest.approx(10)
    assert isinstance(denial, Denial)
    assert (denial.refusal, denial.text) == (
        Refusal.TIMEOUT,
        "it took too long to check the credential",
    )


async def test_the_deadline_of_an_answer_is_that_of_all_steps(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    def steps() -> Steps:
        yield Wait(6)
        return (yield Settle(for_ever))

    began = trio.current_time()
    await ends.conversation(10).run(steps())
    assert trio.current_time() - began == pytest.approx(10)


async def test_a_conversation_without_a_client_settles_too(
    ends: Ends, autojump_clock: trio.testing.MockClock
) -> None:
    conversation = Conversation(trio.current_time() + 10, ends.reach)
    denial = await conversation.run(settling(for_ever))
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.TIMEOUT


async def test_a_client_of_whom_is_asked_gives_way_to_another(ends: Ends) -> None:
    """Anybody can cause questions that take their time."""
    openings = Openings(most=1)
    openings.begin(1, "192.0.2.1")
    ends.client.patience = lambda scope: openings.waiting(1, scope)
    responses: list[object] = []

    async def run() -> None:
        responses.append(await ends.conversation(1000).run(settling(for_ever)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        openings.begin(2, "192.0.2.2")
    (denial,) = responses
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.TIMEOUT
    assert openings.figures.displaced == 1


async def test_a_client_who_was_answered_does_not_give_way_any_more(ends: Ends) -> None:
    openings = Openings(most=1)
    openings.begin(1, "192.0.2.1")
    ends.client.patience = lambda scope: openings.waiting(1, scope)

    async def response() -> Principal:
        return ALICE

    assert await ends.conversation().run(settling(response)) == ALICE
    assert not openings.has_room


async def test_a_mistake_in_an_answer_is_raised(ends: Ends) -> None:
    async def response() -> Principal:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ends.conversation().run(settling(response))
