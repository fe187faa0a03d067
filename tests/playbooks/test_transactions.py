"""Transactions: a client adds to and ends those alone that were given to its principal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.wire.contract import Credential, Denial, Inject, Principal, Refusal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.context import Client
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.owners import Transaction, TransactionOwners
from gateway.wire.pulsar.transactions import MOST_ASKED

from .frames import TOPIC, Fields, frame
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, Outcome, Play
from .services import FakeServices

NOBODY = Credential("none", b"")
"""The gateway's own credential where brokers authenticate nobody."""

OWN_TEXT = "this client has no such transaction"


def named(number: int) -> Fields:
    return {"txnid_most_bits": 2, "txnid_least_bits": number}


def new(request: int, **more: Any) -> bytes:
    return frame(Kind.NEW_TXN, request_id=request, tc_id=2, **more)


def given(request: int, number: int) -> bytes:
    return frame(Kind.NEW_TXN_RESPONSE, request_id=request, **named(number))


def enlist(number: int, **more: Any) -> bytes:
    of: Fields = {"request_id": 9, **named(number), **more}
    return frame(Kind.ADD_PARTITION_TO_TXN, partitions=[TOPIC], **of)


def enlist_subscription(number: int, **more: Any) -> bytes:
    of: Fields = {"request_id": 9, **named(number), **more}
    subscription = [{"topic": TOPIC, "subscription": "s"}]
    return frame(Kind.ADD_SUBSCRIPTION_TO_TXN, subscription=subscription, **of)


def end(number: int, request: int = 9, **more: Any) -> bytes:
    return frame(Kind.END_TXN, request_id=request, txn_action=1, **named(number), **more)


def ended(number: int, request: int = 9, **more: Any) -> bytes:
    return frame(Kind.END_TXN_RESPONSE, request_id=request, **named(number), **more)


USES: dict[Kind, Callable[..., bytes]] = {
    Kind.ADD_PARTITION_TO_TXN_RESPONSE: enlist,
    Kind.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: enlist_subscription,
    Kind.END_TXN_RESPONSE: end,
}
"""The requests that use a transaction, by their response."""

EACH = pytest.mark.parametrize("response", list(USES), ids=lambda kind: kind.name)


class Neighbours:
    """Two clients of one listener: alice and mallory."""

    def __init__(self, mode: Mode = VERIFY, own: Credential | Denial = NOBODY) -> None:
        services = FakeServices()
        services.own = own
        self.alice = Play(mode, services=services)
        self.mallory = self.again("mallory")

    def again(self, name: str) -> Play:
        """Return another connection of a client."""
        play = Play(self.alice.listener.mode, services=self.alice.services)
        play.listener = self.alice.listener
        was = play.hello
        play.hello = Client(
            was.connect, Principal(name, verified=True), was.credential, was.subject
        )
        play.session = type(play.session)(play.listener, play.hello, None)
        return play


def begin(play: Play, number: int, request: int = 1, **more: Any) -> None:
    play.client(new(request, **more)).forwards()
    play.broker(given(request, number)).forwards()


def is_not_found(outcome: Outcome, response: Kind, number: int) -> None:
    told: Fields = {"error": ServerError.TransactionNotFound, "message": OWN_TEXT}
    outcome.refuses(frame(response, request_id=9, **named(number), **told))


# -- whose a transaction is ---------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("mode", [VERIFY, FORWARD_TOO])
@pytest.mark.parametrize("own", [NOBODY, Credential("token", b"t")])
def test_another_principals_transaction_does_not_exist(
    response: Kind, mode: Mode, own: Credential
) -> None:
    both = Neighbours(mode, own)
    begin(both.alice, 5)
    is_not_found(both.mallory.client(USES[response](5)), response, 5)
    both.alice.client(USES[response](5)).forwards()


@EACH
def test_a_transaction_of_nobody_does_not_exist(response: Kind) -> None:
    is_not_found(Neighbours().alice.client(USES[response](5)), response, 5)


@EACH
@pytest.mark.parametrize("own", [Credential("tls", b""), Denial(Refusal.NOT_READY, "no")])
def test_brokers_that_authenticate_judge_transactions_that_the_gateway_does_not_know(
    response: Kind, own: Credential | Denial
) -> None:
    """They were begun at another gateway, or before this one started."""
    Neighbours(own=own).alice.client(USES[response](5)).forwards()


@EACH
def test_in_pass_through_brokers_judge_all_transactions(response: Kind) -> None:
    both = Neighbours(PASS_THROUGH)
    begin(both.alice, 5)
    both.mallory.client(USES[response](5)).forwards()


def test_a_transaction_continues_on_a_later_connection() -> None:
    both = Neighbours()
    begin(both.alice, 5)
    assert both.alice.session.close() is False
    both.again("alice").client(end(5)).forwards()


@EACH
def test_transactions_of_both_kinds_of_coordinators_are_apart(response: Kind) -> None:
    """Both count from 0."""
    both = Neighbours()
    begin(both.alice, 5)
    begin(both.mallory, 5, scalable=True)
    is_not_found(both.mallory.client(USES[response](5)), response, 5)
    both.alice.client(USES[response](5)).forwards()
    both.mallory.client(USES[response](5, scalable=True)).forwards()


def test_two_requests_of_one_id_are_not_mistaken_for_each_other() -> None:
    both = Neighbours()
    begin(both.alice, 5)
    both.mallory.client(new(1, scalable=True)).forwards()
    told: Fields = {"error": ServerError.TooManyRequests}
    text = "too many requests wait on this connection"
    response = frame(Kind.NEW_TXN_RESPONSE, request_id=1, message=text, **told)
    both.mallory.client(new(1)).refuses(response)


def test_a_failed_request_gives_nothing() -> None:
    both = Neighbours()
    both.alice.client(new(1)).forwards()
    no: Fields = {"error": ServerError.TransactionCoordinatorNotFound}
    both.alice.broker(frame(Kind.NEW_TXN_RESPONSE, request_id=1, **no)).forwards()
    is_not_found(both.alice.client(end(0)), Kind.END_TXN_RESPONSE, 0)


def test_a_response_to_no_request_gives_nothing() -> None:
    both = Neighbours()
    both.alice.broker(given(1, 5)).forwards()
    is_not_found(both.alice.client(end(5)), Kind.END_TXN_RESPONSE, 5)


def test_a_transaction_that_could_not_end_is_still_the_clients() -> None:
    both = Neighbours()
    begin(both.alice, 5)
    both.alice.client(end(5)).forwards()
    both.alice.broker(ended(5, error=ServerError.InvalidTxnStatus)).forwards()
    both.alice.client(end(5)).forwards()
    both.alice.broker(ended(5)).forwards()
    is_not_found(both.alice.client(end(5)), Kind.END_TXN_RESPONSE, 5)


def test_an_id_that_a_coordinator_gives_anew_belongs_to_the_latest() -> None:
    both = Neighbours()
    begin(both.alice, 0)
    begin(both.mallory, 0)
    is_not_found(both.alice.client(end(0)), Kind.END_TXN_RESPONSE, 0)
    both.mallory.client(end(0)).forwards()


@pytest.mark.parametrize("ask", [new, lambda request: end(0, request)])
def test_requests_in_flight_have_a_bound(ask: Callable[[int], bytes]) -> None:
    both = Neighbours()
    begin(both.alice, 0, request=0)
    for request in range(1, MOST_ASKED + 1):
        both.alice.client(ask(request)).forwards()
    effects = both.alice.client(ask(MOST_ASKED + 1)).effects or ()
    assert isinstance(effects[1], Inject)
    assert b"too many requests" in effects[1].data


# -- owners -------------------------------------------------------------------------------------


def numbered(number: int) -> Transaction:
    return Transaction(False, 0, number)


def test_transactions_of_one_principal_do_not_displace_anothers() -> None:
    owners = TransactionOwners(most=10)
    owners.add(numbered(1000), "alice")
    for number in range(100):
        owners.add(numbered(number), "mallory")
    assert owners.get(numbered(1000)) == "alice"
    known = [number for number in range(100) if owners.get(numbered(number))]
    assert known == list(range(100 - len(known), 100))
    assert 0 < len(known) < 10


def test_a_latecomer_has_room() -> None:
    owners = TransactionOwners(most=64)
    for number in range(100):
        owners.add(numbered(number), "mallory")
    owners.add(numbered(1000), "alice")
    assert owners.get(numbered(1000)) == "alice"
    owners.remove(numbered(1000))
    assert owners.get(numbered(1000)) is None
