"""A connection takes one slot of its address and principal, and gives it back however it ends."""

from __future__ import annotations

import pytest

from gateway.control.slots import ADDRESS_FULL, PRINCIPAL_FULL, Slots
from gateway.wire.account import Action
from gateway.wire.budget import Budget
from gateway.wire.contract import Denial, EndReason, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.services import Again

from .frames import auth_challenge, auth_response, connect, connected, error
from .script import PASS_THROUGH, VERIFY, Play, Talk, opening
from .services import ORIGIN, FakeServices
from .test_budget import full

CLOSED = Denial(Refusal.CLOSED, "the connection was closed")
SLOW = Denial(Refusal.TIMEOUT, "it took too long")
ALICE = connect(auth_data=b"alice's token")


def services_of(of_address: int | None = None, of_principal: int | None = None) -> FakeServices:
    services = FakeServices()
    services.slots = Slots(of_address, of_principal)
    return services


def taken(services: FakeServices) -> int:
    """Return how many slots are taken; both ways of counting agree."""
    slots = services.slots
    assert sum(slots._addresses.values()) == sum(slots._principals.values())
    return sum(slots._addresses.values())


def seated(services: FakeServices) -> Talk:
    """Begin to open a connection, up to the dial."""
    return opening(VERIFY, services).client_says(ALICE)


def opened(services: FakeServices) -> Talk:
    talk = seated(services).dials(None)
    talk.said_to_broker()
    return talk.broker_says(connected()).tells_client(connected())


def test_an_open_connection_keeps_one_seat_until_its_session_is_closed() -> None:
    services = services_of()
    session = opened(services).opens()
    assert taken(services) == 1
    while session.close():
        pass
    assert taken(services) == 0
    session.close()
    assert taken(services) == 0


@pytest.mark.parametrize(
    ("bounds", "denial"), [((1, None), ADDRESS_FULL), ((None, 1), PRINCIPAL_FULL)]
)
def test_one_connection_too_many_is_refused_before_a_broker_hears_of_it(
    bounds: tuple[int | None, int | None], denial: Denial
) -> None:
    services, budget = services_of(*bounds), Budget()
    first = opened(services).opens()
    talk = opening(VERIFY, services, budget=budget).client_says(ALICE)
    said = talk.refused(EndReason.TOO_MANY_CONNECTIONS).error
    assert (said.error, said.message) == (ServerError.TooManyRequests, denial.text)
    assert (taken(services), budget.taken) == (1, 0)
    first.close()
    opened(services).opens()


def test_a_client_of_unknown_name_counts_by_its_address_alone() -> None:
    services = services_of(of_principal=1)
    talks = [opening(PASS_THROUGH, services).client_says(connect()) for _ in range(3)]
    assert services.slots._addresses == {ORIGIN.host: len(talks)}
    assert services.slots._principals == {}


def test_who_is_not_authenticated_takes_no_seat() -> None:
    services = services_of(1, 1)
    for said in (connect(auth_data=b"alice's expired token"), connect(auth_data=b"nonsense")):
        opening(VERIFY, services).client_says(said).refused(EndReason.AUTHENTICATION_FAILED)
    for gone in (CLOSED, SLOW):
        opening(VERIFY, services).client_says(gone)
    assert taken(services) == 0


def test_a_client_for_whose_connect_there_is_no_room_takes_no_seat() -> None:
    services, budget = services_of(), Budget()
    full(budget)
    opening(VERIFY, services, budget=budget).client_says(ALICE).refused(EndReason.OUT_OF_MEMORY)
    assert taken(services) == 0


@pytest.mark.parametrize(
    "response",
    [
        CLOSED,
        SLOW,
        error(1, ServerError.ServiceNotReady, "no"),
        error(1, ServerError.AuthenticationError, "no"),
        auth_response(b"not an answer"),
        b"\0\0\0\5\0\0\0\1\xff",
    ],
    ids=["closed", "slow", "not ready", "not authenticated", "another command", "nonsense"],
)
def test_the_seat_is_given_back_if_the_broker_does_not_take_the_client(
    response: bytes | Denial,
) -> None:
    services = services_of()
    talk = seated(services).dials(None)
    talk.said_to_broker()
    assert taken(services) == 1
    _ = talk.broker_says(response).outcome
    assert taken(services) == 0


def test_the_seat_is_given_back_after_too_many_rounds_with_the_broker() -> None:
    services = services_of()
    talk = seated(services).dials(None)
    talk.said_to_broker()
    while not talk._over:
        talk.broker_says(auth_challenge())
        if not talk._over:
            talk.said_to_broker()
    assert taken(services) == 0


def test_the_seat_is_given_back_if_no_broker_is_reached() -> None:
    services = services_of()
    seated(services).dials(None, refused=SLOW).refused(EndReason.DIAL_TIMEOUT)
    assert taken(services) == 0


def test_the_seat_is_given_back_if_the_gateway_has_no_credential() -> None:
    services = services_of()
    services.own = Denial(Refusal.NOT_READY, "no token")
    seated(services).refused(EndReason.NO_BROKER)
    assert taken(services) == 0


def test_the_seat_is_given_back_if_the_named_broker_is_unknown() -> None:
    services = services_of()
    said = connect(auth_data=b"alice's token", proxy_to_broker_url="pulsar://invented.gw:6650")
    opening(VERIFY, services).client_says(said).refused(EndReason.TARGET_REFUSED)
    assert taken(services) == 0


def test_a_client_that_waits_for_its_turn_has_its_seat() -> None:
    services = services_of()
    services.paced, services.delay = {Action.CONNECT}, Again(5.0, 0.0)
    talk = seated(services)
    assert taken(services) == 1
    services.delay = Denial(Refusal.TOO_MANY, "too often")
    talk.waits(5.0).refused(EndReason.TOO_MANY_CONNECTS)
    assert taken(services) == 0


@pytest.mark.parametrize("where", ["dial", "greeting", "answer", "connected"])
def test_the_seat_is_given_back_if_the_opening_is_given_up(where: str) -> None:
    """As when the gateway stops, or a bug ends the conversation."""
    services = services_of()
    talk = seated(services)
    if where != "dial":
        talk.dials(None)
    if where in ("answer", "connected"):
        talk.said_to_broker()
    if where == "connected":
        talk.broker_says(connected())
    assert taken(services) == 1
    talk._steps.close()
    assert taken(services) == 0


def test_a_newer_credential_takes_no_second_seat() -> None:
    services = services_of(1, 1)
    play = Play(VERIFY, services=services)
    play.client(auth_response(b"alice's newer token"))
    assert taken(services) == 0, "a session has the seat that its opening took"
