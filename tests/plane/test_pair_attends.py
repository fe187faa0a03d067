"""The session is asked for further effects when bytes went to the client or allowance came."""

from __future__ import annotations

from gateway.wire.contract import (
    Attend,
    Await,
    Direction,
    Discard,
    Drop,
    Effects,
    EndReason,
    Inject,
)

from .harness import OURS, Opened, Plane, responses
from .protocol import crash, passing, stop


class Hungry:
    """Injects a frame at each of the first `times` calls."""

    def __init__(self, pair: Opened, times: int) -> None:
        self.asked = 0
        self._times = times
        pair.session.delivery = self

    def __call__(self) -> Effects | None:
        self.asked += 1
        self._times -= 1
        return (Inject(Direction.TO_BROKER, OURS),) if self._times >= 0 else None


def attended(plane: Plane, pair: Opened, *more: object) -> None:
    responses(pair, (b"flow", (Drop(), *more, Attend())))  # type: ignore[arg-type]
    pair.client.say(stop(b"flow"))
    plane.turn()


def test_the_session_is_asked_after_each_chunk_to_the_client_until_done(
    plane: Plane, pair: Opened
) -> None:
    hungry = Hungry(pair, times=3)
    pair.broker.say(passing())
    plane.turn()
    assert hungry.asked == 0
    attended(plane, pair)
    for _ in range(10):
        pair.broker.say(passing())
        plane.turn()
    assert hungry.asked == 4
    assert pair.broker.hear() == OURS * 3


def test_the_session_is_asked_when_kept_bytes_are_moved(plane: Plane, pair: Opened) -> None:
    hungry = Hungry(pair, times=5)
    attended(plane, pair)
    before = hungry.asked
    pump = pair.pair.pumps[Direction.TO_CLIENT]
    pump.pause()
    pump.unpause(plane.clock())
    assert hungry.asked == before + 1


def test_the_session_is_asked_when_the_awaited_grant_comes(plane: Plane, pair: Opened) -> None:
    account = pair.session.account(1)
    account.hold()
    attended(plane, pair, Await(account))
    asked = Hungry(pair, times=1)
    plane.reactor.grant(account, 5, 1000)
    assert account.messages_ceiling == 5
    assert pair.broker.hear() == OURS
    plane.reactor.grant(account, 5, 1000)
    assert asked.asked == 1
    assert not plane.reactor.granted


def test_a_discarded_account_awaits_no_grant(plane: Plane, pair: Opened) -> None:
    account = pair.session.account(1)
    attended(plane, pair, Await(account))
    responses(pair, (b"close", (Drop(), Discard(account))))
    pair.client.say(stop(b"close"))
    plane.turn()
    asked = Hungry(pair, times=1)
    plane.reactor.grant(account, 5, 1000)
    assert asked.asked == 0
    assert not plane.reactor.granted


def test_a_pair_that_ends_awaits_no_grant(plane: Plane, pair: Opened) -> None:
    account = pair.session.account(1)
    attended(plane, pair, Await(account))
    pair.client.close()
    plane.turn()
    assert not plane.reactor.granted
    plane.reactor.grant(account, 5, 1000)


def test_a_bug_in_delivered_ends_its_pair_alone(plane: Plane, pair: Opened) -> None:
    other = plane.open()
    Hungry(pair, times=5)
    attended(plane, pair)
    pair.session.delivery = crash
    pair.broker.say(passing())
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert not other.pair.over
