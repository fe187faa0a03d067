"""Revoking accounts in all pairs."""

from __future__ import annotations

from gateway.wire.contract import Denial, Direction, EndReason, Inject, Refusal
from gateway.wire.subject import Caller

from .harness import OURS, Opened, Plane
from .protocol import crash

DENIAL = Denial(Refusal.UNAUTHORIZED, "not allowed any more")


def numbered(plane: Plane, number: int) -> Opened:
    """Return a pair whose connection and accounts have this number."""
    pair = plane.open()
    pair.session.caller = Caller(connection=number)
    return pair


def test_the_session_of_the_account_is_asked_and_no_other(plane: Plane) -> None:
    one, other = numbered(plane, 1), numbered(plane, 2)
    account = one.session.account(1)
    one.session.revocation = lambda account: (Inject(Direction.TO_CLIENT, OURS),)
    connection = account.subject.connection
    one.session.caller = Caller(connection=connection)
    plane.reactor.revoke({account: DENIAL})
    plane.turn()
    assert one.session.revoked == [(account, DENIAL)]
    assert other.session.revoked == []
    assert one.client.hear() == OURS


def test_a_bug_ends_that_pair_alone(plane: Plane) -> None:
    one, other = numbered(plane, 1), numbered(plane, 2)
    account = one.session.account(1)
    one.session.caller = Caller(connection=account.subject.connection)
    one.session.revocation = crash
    plane.reactor.revoke({account: DENIAL})
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert other.pair in plane.reactor.pairs
