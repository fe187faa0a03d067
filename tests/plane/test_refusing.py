"""Refusals that wait for their turn among held frames and the receipts before them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from gateway.plane.waiting import ANSWERS_AT_ONCE, ANSWERS_STEP
from gateway.wire.account import Account, Patience
from gateway.wire.contract import DROP, FORWARD, Direction, Drop, Effects, Hold, Refuse

from .harness import Opened, Plane
from .protocol import counted, frames, passing


@dataclass
class Refusing:
    """One account of a pair: `may_wait` frames are held, the others refused by their numbers."""

    pair: Opened
    may_wait: int = 2
    account: Account = field(init=False)

    def __post_init__(self) -> None:
        self.account = self.pair.session.account(1)
        self.account.patience = Patience(1.0, 1.0)
        self.account.hold()
        self.pair.session.response = self._response

    def _response(self, direction: Direction, frame: bytes) -> Effects:
        if frame[4] != counted(0)[4]:
            return FORWARD
        if frame[5] != 1:
            return DROP
        if self.may_wait:
            self.may_wait -= 1
            return (Hold(self.account),)
        return (Drop(), Refuse(self.account, refused(frame[6:])))


def refused(number: bytes) -> bytes:
    return passing(b"refused " + number)


def one(number: int) -> bytes:
    return counted(1, b"%d" % number)


@pytest.fixture
def refusing(pair: Opened) -> Refusing:
    return Refusing(pair)


def sends(plane: Plane, pair: Opened, *numbers: int) -> None:
    pair.client.say(b"".join(map(one, numbers)))
    plane.turn()


def acknowledges(plane: Plane, pair: Opened, account: Account, count: int) -> None:
    """Send the broker's receipts, which the scanner counts."""
    account.receipts += count
    pair.broker.say(passing(b"receipt"))
    plane.turn()


def responses(pair: Opened) -> list[bytes]:
    return [frame for frame in frames(pair.client.hear()) if b"refused" in frame]


def test_a_refusal_comes_behind_the_receipts_of_earlier_frames(
    plane: Plane, pair: Opened, refusing: Refusing
) -> None:
    sends(plane, pair, 0, 1, 2, 3)
    assert responses(pair) == []
    plane.reactor.grant(refusing.account, 2, 1 << 20)
    assert frames(pair.broker.hear()) == [one(0), one(1)]
    acknowledges(plane, pair, refusing.account, 1)
    assert responses(pair) == []
    acknowledges(plane, pair, refusing.account, 1)
    assert responses(pair) == [refused(b"2"), refused(b"3")]
    assert plane.memory.used == refusing.account.queued == 0
    assert not plane.reactor.granted


def test_nothing_overtakes_a_refusal_despite_allowance(
    plane: Plane, pair: Opened, refusing: Refusing
) -> None:
    sends(plane, pair, 0, 1, 2)
    refusing.may_wait = 1
    sends(plane, pair, 3)
    plane.reactor.grant(refusing.account, 5, 1 << 20)
    assert frames(pair.broker.hear()) == [one(0), one(1)]
    assert refusing.account.held
    plane.reactor.grant(refusing.account, 1, 0)
    acknowledges(plane, pair, refusing.account, 2)
    assert responses(pair) == [refused(b"2")]
    assert frames(pair.broker.hear()) == [one(0), one(1), one(3)]
    assert refusing.account.messages_ceiling - refusing.account.messages == 3
    assert not plane.reactor.granted


def test_another_refusal_uses_no_kept_back_allowance(
    plane: Plane, pair: Opened, refusing: Refusing
) -> None:
    sends(plane, pair, 0, 1, 2)
    plane.reactor.grant(refusing.account, 5, 1 << 20)
    sends(plane, pair, 3)
    acknowledges(plane, pair, refusing.account, 2)
    assert responses(pair) == [refused(b"2"), refused(b"3")]
    assert refusing.account.messages_ceiling - refusing.account.messages == 3


def test_frames_that_may_be_refused_are_decided_one_by_one(
    plane: Plane, pair: Opened, refusing: Refusing
) -> None:
    sends(plane, pair, *range(6))
    assert len(pair.session.decided) == 6


def test_other_producers_go_on_while_a_refusal_waits(
    plane: Plane, pair: Opened, refusing: Refusing
) -> None:
    pair.session.account(2)
    sends(plane, pair, 0, 1, 2)
    pair.client.say(counted(2, b"free"))
    plane.turn()
    assert pair.broker.hear() == counted(2, b"free")


def test_a_refusal_waits_for_a_border(plane: Plane, pair: Opened, refusing: Refusing) -> None:
    refusing.may_wait = 1
    sends(plane, pair, 0, 1)
    refusing.may_wait = 1
    sends(plane, pair, 2)
    plane.reactor.grant(refusing.account, 2, 1 << 20)
    long = passing(b"l" * 50)
    pair.client.say(long[:20])
    plane.turn()
    acknowledges(plane, pair, refusing.account, 1)
    assert pair.broker.hear() == one(0) + long[:20]
    pair.client.say(long[20:])
    plane.turn()
    assert pair.broker.hear() == one(0) + long + one(2)
    assert responses(pair) == [refused(b"1")]


def test_a_pair_that_ends_sends_no_refusal(plane: Plane, pair: Opened, refusing: Refusing) -> None:
    sends(plane, pair, 0, 1, 2)
    pair.client.close()
    plane.turn()
    assert plane.memory.used == 0
    assert not plane.reactor.granted


# -- many of them ----------------------------------------------------------------------------


def many(plane: Plane, pair: Opened, number: int) -> list[Account]:
    """Return producers that each have a refusal waiting for one receipt."""
    accounts = [pair.session.account(id) for id in range(number)]
    for account in accounts:
        account.patience = Patience(1.0, 1.0)
        account.messages = 1
        account.hold()

    def response(direction: Direction, frame: bytes) -> Effects:
        account = pair.session.accounts.get(frame[5])
        if frame[4] != counted(0)[4] or account is None:
            return FORWARD
        return (Drop(), Refuse(account, refused(b"%d" % frame[5])))

    pair.session.response = response
    for id in range(number):
        pair.client.say(counted(id))
    plane.turn()
    return accounts


def test_each_of_many_refusals_is_sent_after_its_receipts(plane: Plane, pair: Opened) -> None:
    accounts = many(plane, pair, 200)
    pair.broker.say(passing(b"receipts"))
    plane.turn()
    assert responses(pair) == []
    for account in accounts:
        account.receipts = 1
    pair.broker.say(passing(b"receipts"))
    for _ in range(200 // ANSWERS_AT_ONCE + 1):
        plane.after(ANSWERS_STEP)
    assert sorted(responses(pair)) == sorted(refused(b"%d" % id) for id in range(200))


def test_the_cost_of_a_chunk_to_the_client_is_bounded_for_many_refusals(
    plane: Plane, pair: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(plane, pair, 250)
    looks = 0
    outstanding = Account.outstanding.fget  # type: ignore[attr-defined]

    def counting(account: Account) -> int:
        nonlocal looks
        looks += 1
        return int(outstanding(account))

    monkeypatch.setattr(Account, "outstanding", property(counting))
    for _ in range(10):
        for _ in range(10):
            pair.broker.say(passing(b"message"))
            plane.turn()
        plane.after(ANSWERS_STEP)
    assert 0 < looks <= 10 * ANSWERS_AT_ONCE


def test_a_refusal_waits_for_a_late_border_only_once(plane: Plane, pair: Opened) -> None:
    """However often bytes go to the client meanwhile."""
    accounts = many(plane, pair, 3)
    pair.client.say(passing(b"x" * 100)[:50])
    plane.turn()
    for account in accounts:
        account.receipts = 1
    for _ in range(50):
        pair.broker.say(passing(b"message"))
        plane.turn()
    assert len(pair.pair.pumps[Direction.TO_BROKER]._at_border or ()) == len(accounts)
    pair.client.say(passing(b"x" * 100)[50:])
    plane.turn()
    assert len(responses(pair)) == len(accounts)
