"""Revoking accounts in all pairs."""

from __future__ import annotations

from gateway.wire.account import Account, Action
from gateway.wire.contract import Denial, Direction, EndReason, Inject, Refusal
from gateway.wire.subject import Caller, Subject

from .harness import OURS, Opened, Plane
from .protocol import FakeSession, crash

DENIAL = Denial(Refusal.UNAUTHORIZED, "not allowed any more")


def numbered(plane: Plane, number: int) -> Opened:
    """Return a pair whose connection has this number."""
    session = FakeSession()
    session.caller = Caller(connection=number)
    return plane.open(session)


def account_of(number: int) -> Account:
    """Return an account of the connection with this number."""
    return Account(Action.PRODUCE, Subject(Caller(connection=number)))


def test_the_session_of_the_account_is_asked_and_no_other(plane: Plane) -> None:
    one, other = numbered(plane, 1), numbered(plane, 2)
    account = account_of(1)
    one.session.revocation = lambda account: (Inject(Direction.TO_CLIENT, OURS),)
    plane.reactor.revoke(account, DENIAL)
    plane.turn()
    assert one.session.revoked == [(account, DENIAL)]
    assert other.session.revoked == []
    assert one.client.hear() == OURS


def test_a_bug_ends_that_pair_alone(plane: Plane) -> None:
    one, other = numbered(plane, 1), numbered(plane, 2)
    one.session.revocation = crash
    plane.reactor.revoke(account_of(1), DENIAL)
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert other.pair in plane.reactor.pairs


def test_an_account_of_an_ended_pair_is_left_alone(plane: Plane) -> None:
    one = numbered(plane, 1)
    one.pair.end(EndReason.IDLE)
    plane.reactor.revoke(account_of(1), DENIAL)
    assert one.session.revoked == []
