"""Gateways in a row: who is believed, and what is handed on."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.contract import FORWARD, Direction, EndReason
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError

from .frames import (
    auth_response,
    connect,
    connected,
)
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, VERSION, Talk, opening
from .services import BROKER_1, NAME_1, OWN, FakeServices

OUTER = "outer"
SPOKEN_FOR = connect(
    auth_data=b"outer's token", original_principal="carol", proxy_version="outer 1.0"
)


def inner(mode: Mode = VERIFY) -> Talk:
    """The opening of a gateway that trusts another one."""
    return opening(mode, proxies=frozenset({OUTER}))


def told(mode: Mode, said: bytes) -> BaseCommand:
    return inner(mode).client_says(said).dials(None).said_to_broker()


# -- behind --------------------------------------------------------------------------------------


def test_a_trusted_proxy_is_believed() -> None:
    command = told(VERIFY, SPOKEN_FOR).connect
    assert (command.original_principal, command.proxy_version) == ("carol", "outer 1.0")
    assert command.auth_data == OWN.data
    assert not command.HasField("original_auth_data")


def test_rules_are_held_against_the_client_that_it_speaks_for() -> None:
    services = FakeServices()
    talk = opening(VERIFY, services, proxies=frozenset({OUTER})).client_says(SPOKEN_FOR)
    talk.dials(None).said_to_broker()
    assert [caller.principal for caller in services.completed] == ["carol"]


def test_the_clients_credential_is_passed_on() -> None:
    said = connect(
        auth_data=b"outer's token",
        original_principal="carol",
        original_auth_data="carol's own",
        original_auth_method="basic",
        proxy_version="outer 1.0",
    )
    command = told(FORWARD_TOO, said).connect
    assert (command.original_auth_data, command.original_auth_method) == ("carol's own", "basic")
    assert not told(VERIFY, said).connect.HasField("original_auth_data")


def test_no_credential_is_forwarded_if_the_client_showed_none() -> None:
    command = told(FORWARD_TOO, SPOKEN_FOR).connect
    assert not command.HasField("original_auth_data")
    assert not command.HasField("original_auth_method")


@pytest.mark.parametrize("claim", [{}, {"original_principal": ""}, {"original_principal": OUTER}])
def test_a_trusted_proxy_says_who_its_client_is(claim: dict[str, Any]) -> None:
    talk = inner().client_says(connect(auth_data=b"outer's token", **claim))
    refused = talk.refused(EndReason.AUTHENTICATION_FAILED)
    assert refused.error.error == ServerError.AuthenticationError


def test_principals_that_are_no_proxies_are_not_trusted() -> None:
    talk = inner().client_says(connect(original_principal="carol"))
    talk.refused(EndReason.AUTHENTICATION_FAILED)


def test_a_proxy_shows_its_clients_newer_credential() -> None:
    talk = inner(FORWARD_TOO).client_says(SPOKEN_FOR).dials(None)
    talk.said_to_broker()
    session = talk.broker_says(connected()).tells_client(connected()).opens()
    effects = session.decide(
        Direction.TO_BROKER, auth_response(b"of an issuer nobody knows here"), now=0.0
    )
    assert effects == FORWARD


# -- before --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [PASS_THROUGH, VERIFY])
def test_a_name_of_the_gateway_behind_is_handed_back_to_any_of_them(mode: Mode) -> None:
    said = connect(proxy_to_broker_url=NAME_1)
    command = opening(mode, chained=True).client_says(said).dials(None).said_to_broker()
    assert command.connect.proxy_to_broker_url == str(BROKER_1)


def test_a_lookup_connection_names_nobody() -> None:
    command = opening(VERIFY, chained=True).client_says(connect()).dials(None).said_to_broker()
    assert not command.connect.HasField("proxy_to_broker_url")
    assert command.connect.proxy_version == VERSION


def test_a_name_that_is_not_known_is_refused() -> None:
    talk = opening(VERIFY, chained=True).client_says(connect(proxy_to_broker_url="other:6650"))
    assert talk.refused(EndReason.TARGET_REFUSED).type == BaseCommand.ERROR
