"""Frames that are held for their account, granted and discarded."""

from __future__ import annotations

from gateway.wire.contract import Direction, Discard, Forward, Pause, Replace
from gateway.wire.counters import ENDLESS

from .harness import OURS, Opened, Plane, held, responses
from .protocol import counted, frames, passing, stop

TO_BROKER = Direction.TO_BROKER


def test_a_held_frame_lets_the_others_pass(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.session.account(2)
    pair.client.say(counted(1, b"a") + counted(2, b"b") + passing(b"c") + counted(1, b"d"))
    plane.turn()
    assert pair.broker.hear() == counted(2, b"b") + passing(b"c")
    assert plane.memory.used == pair.pair.kept == len(counted(1, b"a") + counted(1, b"d"))
    assert account.messages == 0


def test_frames_that_follow_wait_without_being_decided(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.session.account(2)
    many = [counted(1, b"%d" % n) for n in range(100)]
    pair.client.say(b"".join(many) + counted(2, b"other")[:7])
    plane.turn()
    assert len(pair.session.decided) == 1
    assert account.queued == len(b"".join(many))
    pair.client.say(counted(2, b"other")[7:] + counted(1, b"last"))
    plane.turn()
    assert pair.broker.hear() == counted(2, b"other")
    plane.reactor.grant(account, 60, 1 << 20)
    plane.reactor.grant(account, 60, 1 << 20)
    assert frames(pair.broker.hear())[1:] == [*many, counted(1, b"last")]


def test_a_grant_sends_as_many_frames_as_it_allows(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(b"".join(counted(1, b"%d" % n) for n in range(5)))
    plane.turn()
    plane.reactor.grant(account, 2, 1000)
    assert pair.broker.hear() == counted(1, b"0") + counted(1, b"1")
    assert account.messages == 2
    pair.client.say(counted(1, b"5"))
    plane.turn()
    plane.reactor.grant(account, 100, 1000)
    pair.client.say(counted(1, b"6"))
    plane.turn()
    assert frames(pair.broker.hear()) == [counted(1, b"%d" % n) for n in range(7)]
    assert account.messages == 7
    assert plane.memory.used == 0


def test_a_grant_without_held_frames_raises_the_allowance(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    plane.reactor.grant(account, 1, 1000)
    pair.client.say(counted(1, b"0") + counted(1, b"1"))
    plane.turn()
    assert pair.broker.hear() == counted(1, b"0")


def test_a_grant_waits_for_a_border(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    long = passing(b"l" * 50)
    pair.client.say(counted(1, b"0") + counted(1, b"1") + long[:20])
    plane.turn()
    plane.reactor.grant(account, 1, 1000)
    assert pair.broker.hear() == long[:20]
    behind = b"".join(passing(b"%d" % n) for n in range(20)) + counted(1, b"2")
    pair.client.say(long[20:] + behind + passing(b"cut")[:3])
    plane.turn()
    pair.client.say(passing(b"cut")[3:])
    plane.turn()
    plane.reactor.grant(account, 100, 1000)
    expected = [
        long,
        counted(1, b"0"),
        *(passing(b"%d" % n) for n in range(20)),
        passing(b"cut"),
        counted(1, b"1"),
        counted(1, b"2"),
    ]
    assert frames(pair.broker.hear()) == expected


def test_a_grant_under_replaced_rules_is_void(plane: Plane, pair: Opened) -> None:
    """The grant waits for a border, and other rules come into force meanwhile."""
    (account,) = held(pair, 1)
    long = passing(b"l" * 50)
    pair.client.say(counted(1, b"0") + long[:20])
    plane.turn()
    plane.reactor.grant(account, ENDLESS, ENDLESS)
    account.generation += 1
    pair.client.say(long[20:])
    plane.turn()
    assert pair.broker.hear() == long
    assert account.held
    plane.reactor.grant(account, 1, 1000)
    assert pair.broker.hear() == long + counted(1, b"0")


def test_a_grant_goes_before_a_carried_header(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0") + passing(b"next")[:3])
    plane.turn()
    plane.reactor.grant(account, 9, 1000)
    pair.client.say(passing(b"next")[3:])
    plane.turn()
    assert pair.broker.hear() == counted(1, b"0") + passing(b"next")


def test_a_grant_goes_before_a_collected_frame(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0") + stop(b"collected" * 9)[:30])
    plane.turn()
    plane.reactor.grant(account, 9, 1000)
    pair.client.say(stop(b"collected" * 9)[30:])
    plane.turn()
    assert pair.broker.hear() == counted(1, b"0") + stop(b"collected" * 9)


def test_a_grant_does_not_wait_for_a_pause(plane: Plane, pair: Opened) -> None:
    """Frames read before the pause are still sent, in order."""
    (account,) = held(pair, 1)
    inner = pair.session.response
    pair.session.response = lambda direction, frame: (
        (Forward(), Pause(TO_BROKER, plane.clock() + 5))
        if frame == stop(b"p")
        else inner(direction, frame)
    )
    pair.client.say(counted(1, b"0") + stop(b"p") + counted(1, b"1") + passing(b"2")[:2])
    plane.turn()
    plane.reactor.grant(account, 9, 1000)
    assert pair.broker.hear() == stop(b"p") + counted(1, b"0")
    pair.client.say(passing(b"2")[2:])
    plane.after(5)
    assert pair.broker.hear() == stop(b"p") + counted(1, b"0") + counted(1, b"1") + passing(b"2")


def test_a_granted_frame_that_stops_the_scanner_is_decided(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.session.response = lambda direction, frame: (Replace(OURS),)
    del pair.session.accounts[1]
    plane.reactor.grant(account, 9, 1000)
    assert pair.broker.hear() == OURS


def test_a_grant_after_the_end_has_no_effect(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.client.close()
    plane.turn()
    plane.reactor.grant(account, 9, 1000)
    assert pair.broker.hear() == b""
    assert plane.memory.used == 0


def test_discarded_frames_are_not_sent(plane: Plane, pair: Opened) -> None:
    first, second = held(pair, 1, 2)
    pair.client.say(counted(1, b"0") + counted(2, b"1") + counted(1, b"2"))
    plane.turn()
    inner = pair.session.response
    pair.session.response = lambda direction, frame: (
        (Forward(), Discard(first)) if frame == stop(b"close") else inner(direction, frame)
    )
    pair.client.say(stop(b"close"))
    plane.turn()
    assert plane.memory.used == len(counted(2, b"1"))
    for account in (first, second):
        plane.reactor.grant(account, 9, 1000)
    assert pair.broker.hear() == stop(b"close") + counted(2, b"1")


def test_discarding_without_held_frames_has_no_effect(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Forward(), Discard(pair.session.account(1)))))
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.broker.hear() == stop(b"x")
