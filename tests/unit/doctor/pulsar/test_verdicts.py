"""Findings from a broker's answers, for each mode and each kind of broker.

The kinds were seen on real brokers 4.2: see tests/doctor/test_real.py.
"""

from __future__ import annotations

import errno

import pytest

from gateway.doctor.finding import Finding, Status
from gateway.doctor.pulsar.hello import Accepted, Answer, Rejected
from gateway.doctor.pulsar.verdicts import (
    BrokerAnswers,
    judge_broker,
    judge_pass_through,
    judge_verified,
)
from gateway.doctor.reach import Unreached
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError

ADDRESS = Address("10.0.0.1", 6650)

YES = Accepted("Pulsar 4", 21, 5 * 1024 * 1024)
WHO = Rejected(ServerError.AuthenticationError, "Failed to authenticate")
ROLES = Rejected(ServerError.AuthorizationError, "Invalid roles.")
STARTING = Rejected(ServerError.ServiceNotReady, "Server is not ready")


def of(answer: Accepted | Rejected | Stranger | Unreached) -> Finding:
    return judge_broker("b", ADDRESS, answer, 0.0031)


# -- is there a broker -----------------------------------------------------------------------


def test_a_broker_tells_its_version_and_its_largest_message() -> None:
    assert of(YES).detail == "Pulsar 4, protocol 21, messages up to 5 MiB; connected in 3 ms"
    assert of(Accepted("old", 12, 0)).detail == "old, protocol 12; connected in 3 ms"


@pytest.mark.parametrize("no", [WHO, ROLES])
def test_a_broker_that_requires_authentication_is_a_broker(no: Rejected) -> None:
    assert of(no).status is Status.OK


def test_a_starting_broker_is_not_ready() -> None:
    found = of(STARTING)
    assert found.status is Status.FAIL
    assert found.detail == "refuses: ServiceNotReady: Server is not ready"
    assert "starting" in found.remedy


def test_an_error_of_a_later_version_is_reported() -> None:
    assert of(Rejected(None, "new")).detail == "refuses: an error that is not known here: new"
    assert of(Rejected(ServerError.UnknownError, "")).detail == "refuses: UnknownError"


@pytest.mark.parametrize(
    ("oddity", "remedy"),
    [
        (Stranger.TLS, "brokerServicePortTls (6651)"),
        (Stranger.HTTP, "webServicePort (8080)"),
        (Stranger.SILENT, "what lies between"),
        (Stranger.CLOSED, "what lies between"),
        (Stranger.STRANGE, "what lies between"),
    ],
)
def test_a_peer_that_is_not_a_broker_gets_advice_about_the_port(
    oddity: Stranger, remedy: str
) -> None:
    found = of(oddity)
    assert found.status is Status.FAIL
    assert found.detail == f"{oddity.words('Pulsar')}: not a broker's plain port"
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (errno.ECONNREFUSED, "refuses connections: nothing listens there"),
        (errno.EHOSTUNREACH, "cannot be reached: no route to the host"),
        (errno.ENETUNREACH, "cannot be reached: this machine has no such network"),
        (errno.EACCES, "cannot be connected to: EACCES"),
        (None, "does not answer"),
    ],
)
def test_no_connection_has_a_reason_and_a_remedy(code: int | None, detail: str) -> None:
    found = of(Unreached(code))
    assert (found.status, found.detail) == (Status.FAIL, detail)
    assert found.remedy
    assert "{" not in found.remedy


# -- who is let in ---------------------------------------------------------------------------


def test_pass_through_clients_are_accepted_or_must_authenticate() -> None:
    everybody = judge_pass_through("c", BrokerAnswers(YES))
    asked = judge_pass_through("c", BrokerAnswers(WHO))
    assert everybody is not None
    assert asked is not None
    assert everybody.status is asked.status is Status.OK
    assert asked.detail == "wants authentication; clients have to bring it"


@pytest.mark.parametrize("answer", [Stranger.TLS, Unreached(None), STARTING])
def test_without_an_answer_there_is_no_finding_about_clients(answer: Answer) -> None:
    assert judge_pass_through("c", BrokerAnswers(answer)) is None
    assert judge_verified("g", BrokerAnswers(answer), "proxy", forward=False) is None


def let_in(
    anonymous: Answer, alone: Answer | None, proxied: Answer, *, forward: bool = False
) -> Finding:
    found = judge_verified("g", BrokerAnswers(anonymous, alone, proxied), "proxy", forward=forward)
    assert found is not None
    return found


def test_a_proxy_role_is_recognized() -> None:
    found = let_in(WHO, ROLES, YES)
    assert found.status is Status.OK
    assert found.detail == 'accepts the credential, and the role "proxy" as a proxy'


def test_a_role_that_is_not_a_proxy_gets_the_setting_to_add() -> None:
    found = let_in(WHO, YES, ROLES)
    assert found.status is Status.FAIL
    assert '"proxy" may not speak for others' in found.detail
    assert found.example == "proxyRoles=proxy"


def test_a_rejected_credential_fails() -> None:
    found = let_in(WHO, WHO, WHO)
    assert found.status is Status.FAIL
    assert "does not accept the gateway's credential" in found.detail


def test_a_gateway_without_a_credential_gets_advice() -> None:
    found = let_in(WHO, None, WHO)
    assert found.status is Status.FAIL
    assert found.example.startswith("credential: ")


def test_a_broker_without_authentication_is_a_warning() -> None:
    assert let_in(YES, YES, YES).status is Status.WARN
    assert let_in(YES, None, YES).status is Status.WARN


def test_a_broker_without_authorization_is_a_warning() -> None:
    found = let_in(WHO, YES, YES)
    assert found.status is Status.WARN
    assert "authorization is off" in found.detail
    assert "proxyRoles=proxy" in found.example


def test_a_broker_that_requires_client_tokens_needs_forwarding() -> None:
    assert let_in(WHO, ROLES, WHO, forward=True).status is Status.OK
    found = let_in(WHO, ROLES, WHO)
    assert found.status is Status.FAIL
    assert "verify-and-forward" in found.remedy


def test_ignored_forwarded_tokens_are_a_warning() -> None:
    found = let_in(WHO, ROLES, YES, forward=True)
    assert found.status is Status.WARN
    assert found.example == "authenticateOriginalAuthData=true"


def test_another_error_shows_the_brokers_text() -> None:
    neither = let_in(WHO, ROLES, ROLES)
    assert neither.status is Status.FAIL
    assert "AuthorizationError: Invalid roles." in neither.detail
    assert "Server is not ready" in let_in(WHO, STARTING, STARTING).detail


@pytest.mark.parametrize("answer", [Stranger.CLOSED, Unreached(None)])
def test_a_broker_that_closes_only_on_the_gateway_fails(answer: Answer) -> None:
    assert let_in(WHO, ROLES, answer).status is Status.FAIL


def test_an_unknown_role_is_a_placeholder() -> None:
    found = judge_verified("g", BrokerAnswers(WHO, YES, ROLES), None, forward=False)
    assert found is not None
    assert "the gateway's role may not" in found.detail
    assert found.example == "proxyRoles=ROLE-OF-THE-GATEWAY"


def test_the_best_answer_is_acceptance() -> None:
    assert BrokerAnswers(WHO, ROLES, YES).best == YES
    assert BrokerAnswers(WHO, YES, ROLES).best == YES
    assert BrokerAnswers(WHO, None, ROLES).best == WHO
