"""Who is asked for a credential again on an open pair, and who may answer."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import AfterJob, Denial, Direction, Drop, EndReason, Inject, Refusal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.frames import Kind

from .frames import LATER, NO_REQUEST, auth_challenge, auth_response, connect, error, frame
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, VERSION, Outcome, Play, Talk
from .services import EXPIRED, OWN

NEWER = auth_response(b"alice's newer token")


# -- the broker asks ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [PASS_THROUGH, FORWARD_TOO])
def test_the_client_is_asked_for_a_credential_of_its_own(mode: Mode) -> None:
    Play(mode).broker(auth_challenge()).forwards()


def test_the_gateway_answers_for_its_own_credential() -> None:
    response = Inject(Direction.TO_BROKER, auth_response(OWN.data, version=VERSION))
    Play(VERIFY).broker(auth_challenge()).gives(Drop(), response)


def test_without_a_credential_of_its_own_the_gateway_ends_the_pair() -> None:
    play = Play(VERIFY)
    play.services.own = Denial(Refusal.NOT_READY, "no token")
    farewell = play.broker(auth_challenge()).ended(EndReason.AUTHENTICATION_FAILED)
    assert (farewell.error.request_id, farewell.error.message) == (NO_REQUEST, "no token")
    assert farewell.error.error == ServerError.ServiceNotReady


# -- the client answers ------------------------------------------------------------------------


def test_a_newer_credential_passes_and_is_remembered() -> None:
    play = Play(PASS_THROUGH)
    play.client(NEWER).forwards()
    assert play.hello.credential.data == b"alice's newer token"
    assert play.hello.connect.auth_data == b"alice's newer token"


def test_a_credential_without_a_method_is_of_the_method_before() -> None:
    play = Play(FORWARD_TOO)
    play.client(
        frame(Kind.AUTH_RESPONSE, response={"auth_data": b"alice's newer token"})
    ).forwards()
    assert (play.hello.credential.method, play.hello.connect.auth_method_name) == ("token", "token")


def test_a_passed_through_credential_is_the_brokers_to_judge() -> None:
    Play(PASS_THROUGH).client(auth_response(b"mallory's token")).forwards()


def test_a_client_that_we_verified_was_not_asked() -> None:
    play = Play(VERIFY)
    play.client(NEWER).drops()
    assert play.hello.credential.data == b"alice's token"


def test_a_forwarded_credential_is_verified_again() -> None:
    play = Play(FORWARD_TOO)
    play.client(NEWER).forwards()
    assert play.hello.credential.data == b"alice's newer token"


@pytest.mark.parametrize("data", [b"alice's expired token", b"nonsense"])
def test_a_forwarded_credential_that_is_no_good_ends_the_pair(data: bytes) -> None:
    play = Play(FORWARD_TOO)
    farewell = play.client(auth_response(data)).ended(EndReason.AUTHENTICATION_FAILED)
    assert farewell.error.error == ServerError.AuthenticationError
    assert play.hello.credential.data == b"alice's token"


def test_the_end_says_why() -> None:
    outcome = Play(FORWARD_TOO).client(auth_response(b"alice's expired token"))
    assert outcome.ended(EndReason.AUTHENTICATION_FAILED).error.message == EXPIRED.text


def test_the_principal_may_not_change() -> None:
    play = Play(FORWARD_TOO)
    farewell = play.client(auth_response(b"bob's token")).ended(EndReason.AUTHENTICATION_FAILED)
    assert farewell.error.message == "the principal may not change on a connection"
    assert play.hello.credential.data == b"alice's token"


# -- the response takes longer -------------------------------------------------------------------

LATE = Denial(Refusal.TIMEOUT, "it took too long to check the credential")


def asking(data: bytes, play: Play | None = None) -> tuple[Play, Talk, AfterJob]:
    """Return the pair of a client that showed a newer credential, and the job that asks whose it
    is."""
    play = play or Play(FORWARD_TOO)
    play.services.settles = True
    job, then = play.client(auth_response(data)).asked()
    return play, Talk(job.converse()), then


def test_a_credential_goes_on_once_it_was_checked() -> None:
    play, talk, then = asking(b"alice's newer token")
    assert play.hello.credential.data == b"alice's token"
    talk.settles().ends(b"")
    play.resume(then, b"").gives(Inject(Direction.TO_BROKER, NEWER))
    assert play.hello.credential.data == b"alice's newer token"


def test_fields_that_are_not_known_go_on_too() -> None:
    play = Play(FORWARD_TOO)
    play.services.settles = True
    proof = {"auth_method_name": "token", "auth_data": b"alice's newer token"}
    said = frame(Kind.AUTH_RESPONSE, response=proof, unknown=LATER)
    job, then = play.client(said).asked()
    Talk(job.converse()).settles().ends(b"")
    play.resume(then, b"").gives(Inject(Direction.TO_BROKER, said))


def test_a_credential_that_is_no_good_ends_the_pair_later() -> None:
    play, talk, then = asking(b"alice's expired token")
    talk.settles().ends(EXPIRED)
    farewell = farewell_of(play.resume(then, EXPIRED))
    assert (farewell.error.error, farewell.error.message) == (
        ServerError.AuthenticationError,
        EXPIRED.text,
    )
    assert play.hello.credential.data == b"alice's token"


def test_another_principal_ends_the_pair_later() -> None:
    play, talk, then = asking(b"bob's token")
    talk.settles().ends(b"")
    farewell = farewell_of(play.resume(then, b""))
    assert farewell.error.message == "the principal may not change on a connection"
    assert play.hello.credential.data == b"alice's token"


def test_an_answer_that_comes_too_late_ends_the_pair() -> None:
    play, talk, then = asking(b"alice's newer token")
    talk.settles(late=LATE).ends(LATE)
    farewell = farewell_of(play.resume(then, LATE))
    assert farewell.error.message == LATE.text


@pytest.mark.parametrize("outcome", ["failed", "late"])
def test_a_check_that_fails_ends_the_pair(outcome: str) -> None:
    play = Play(FORWARD_TOO)
    play.services.settles = True
    job, then = play.client(NEWER).asked()
    result = job.failed if outcome == "failed" else job.late
    assert farewell_of(play.resume(then, result)).error.message == (
        "the credential could not be checked"
    )


def test_one_credential_is_checked_at_a_time() -> None:
    """Each is kept until it has a response, and a client could show thousands."""
    play, _, _ = asking(b"alice's newer token")
    farewell_of(play.client(auth_response(b"alice's newest token")))


def farewell_of(outcome: Outcome) -> BaseCommand:
    """Return what a client is told whose pair ends because of its credential."""
    return outcome.ended(EndReason.AUTHENTICATION_FAILED)


# -- other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_nobody_connects_twice(mode: Mode) -> None:
    with pytest.raises(PeerError, match="a second CONNECT"):
        Play(mode).client(connect())


def test_only_what_we_verified_and_do_not_forward_expires_here() -> None:
    assert Play(VERIFY).session.expires_at == 1000.0
    assert Play(PASS_THROUGH).session.expires_at is None
    assert Play(FORWARD_TOO).session.expires_at is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (EndReason.CLIENT_VIOLATION, ServerError.UnsupportedVersionError),
        (EndReason.FRAME_TOO_LARGE, ServerError.UnsupportedVersionError),
        (EndReason.CREDENTIAL_EXPIRED, ServerError.AuthenticationError),
    ],
)
def test_a_client_at_fault_is_told(reason: EndReason, code: ServerError.ValueType) -> None:
    assert Play().session.farewell(reason, "why") == error(NO_REQUEST, code, "why")


@pytest.mark.parametrize(
    "reason",
    [EndReason.CLIENT_CLOSED, EndReason.BROKER_LOST, EndReason.IDLE, EndReason.BROKER_VIOLATION],
)
def test_other_clients_just_reconnect(reason: EndReason) -> None:
    assert Play().session.farewell(reason, "why") == b""
