"""One CONNECT: its content for each of three probes, and the meaning of the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.doctor.pulsar.hello import (
    DOCTOR,
    Accepted,
    Answer,
    Probe,
    Rejected,
    alone,
    anonymous,
    frame_length,
    greet,
    printable,
    speaking_for,
)
from gateway.doctor.strangers import Stranger, recognize
from gateway.errors import PeerError
from gateway.identity.credential import NoCredential, TokenFile
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dial, Dialled, Receive, Refusal, StepResult, Transmit
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandConnect, ServerError
from gateway.wire.pulsar.commands import decode
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import command, data, frame, number, simple
from tests.unit.doctor.fakes import CONNECTED, error

CHALLENGE = simple(Kind.AUTH_CHALLENGE, server_version="4", protocol_version=20)


@pytest.fixture
def own(tmp_path: Path) -> TokenFile:
    path = tmp_path / "token"
    path.write_text("the-token")
    return TokenFile(path)


def connect_of(probe: Probe) -> CommandConnect:
    return decode(probe.greeting()).connect


def play(probe: Probe, *heard: StepResult) -> tuple[Answer, list[bytes]]:
    """Run the conversation with a broker that sends this; return the answer and the sent frames."""
    answers, sent = iter(heard), list[bytes]()
    steps = greet(probe)
    result: StepResult = None
    while True:
        try:
            step = steps.send(result)
        except StopIteration as stop:
            assert next(answers, None) is None, "the broker was not heard to the end"
            return stop.value, sent
        match step:
            case Dial():
                result = Dialled(Address("127.0.0.1", 1))
            case Transmit(_, data):
                sent.append(data)
                result = None
            case Receive():
                result = next(answers)


# -- who speaks ------------------------------------------------------------------------------


def test_the_anonymous_probe_sends_no_credential() -> None:
    connect = connect_of(anonymous())
    assert (connect.auth_method_name, connect.auth_data) == ("none", b"")
    assert not connect.HasField("original_principal")
    assert not connect.HasField("proxy_version")


def test_the_probe_alone_sends_only_its_credential(own: TokenFile) -> None:
    connect = connect_of(alone(own))
    assert (connect.auth_method_name, connect.auth_data) == ("token", b"the-token")
    assert not connect.HasField("original_principal")


def test_the_probe_for_a_client_sends_what_the_gateway_sends(own: TokenFile) -> None:
    connect = connect_of(speaking_for(own))
    assert (connect.auth_method_name, connect.auth_data) == ("token", b"the-token")
    assert connect.original_principal == DOCTOR
    assert connect.proxy_version


# -- what is answered ------------------------------------------------------------------------


def test_connected_means_accepted() -> None:
    answer, sent = play(anonymous(), CONNECTED)
    assert answer == Accepted("Pulsar Server of a test", 20, 5 * 1024 * 1024)
    assert len(sent) == 1


def test_an_error_means_rejected_with_its_code() -> None:
    answer, _ = play(anonymous(), error(ServerError.AuthorizationError, "Invalid roles."))
    assert answer == Rejected(ServerError.AuthorizationError, "Invalid roles.")


def test_an_error_of_a_later_version_has_no_code() -> None:
    answer, _ = play(
        anonymous(), frame(command(Kind.ERROR, number(1, 7) + number(2, 99) + data(3, b"new")))
    )
    assert answer == Rejected(None, "new")


def test_a_challenge_rejects_a_probe_without_a_credential() -> None:
    answer, _ = play(anonymous(), CHALLENGE)
    assert isinstance(answer, Rejected)
    assert answer.code == ServerError.AuthenticationError


def test_a_challenge_is_answered_with_the_credential(own: TokenFile) -> None:
    answer, sent = play(speaking_for(own), CHALLENGE, CONNECTED)
    assert isinstance(answer, Accepted)
    assert decode(sent[1]).authResponse.response.auth_data == b"the-token"


def test_endless_challenges_mean_rejected(own: TokenFile) -> None:
    answer, sent = play(alone(own), *[CHALLENGE] * 10)
    assert answer == Rejected(
        ServerError.AuthenticationError, "asks for the credential without end"
    )
    assert len(sent) == 11


@pytest.mark.parametrize(
    ("refusal", "oddity"),
    [
        (Refusal.TIMEOUT, Stranger.SILENT),
        (Refusal.CLOSED, Stranger.CLOSED),
        (Refusal.TOO_MANY, Stranger.STRANGE),
    ],
)
def test_no_answer_means_a_stranger(refusal: Refusal, oddity: Stranger) -> None:
    answer, _ = play(anonymous(), Denial(refusal, ""))
    assert answer is oddity


def test_another_command_is_strange() -> None:
    assert play(anonymous(), simple(Kind.PONG))[0] is Stranger.STRANGE


def test_undecodable_bytes_are_a_peer_error() -> None:
    with pytest.raises(PeerError):
        play(anonymous(), b"\0\0\0\4\0\0\0\xff")


@pytest.mark.parametrize(
    ("received", "oddity"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", Stranger.HTTP),
        (b"<!DOCTYPE HTML>", Stranger.HTTP),
        (b"\x15\x03\x03\x00\x02\x02\x46", Stranger.TLS),
        (b"\x16\x03\x03\x00\x7a", Stranger.TLS),
        (b"SSH-2.0-OpenSSH_9", Stranger.STRANGE),
        (b"", Stranger.CLOSED),
    ],
)
def test_a_peer_is_recognized_by_its_first_bytes(received: bytes, oddity: Stranger) -> None:
    assert recognize(Stranger.CLOSED, received) is oddity


def test_the_first_bytes_tell_the_length_of_a_frame() -> None:
    assert frame_length(b"\0\0\0") == 0
    assert frame_length(CONNECTED) == len(CONNECTED)


def test_a_peers_text_cannot_control_the_terminal() -> None:
    assert printable("a\x1b[2Jb\r\nc") == "a [2Jb c"
    assert printable(b"not UTF-8: \xff") == "not UTF-8: \N{REPLACEMENT CHARACTER}"
    assert len(printable("x" * 10_000)) == 200


def test_without_a_credential_the_method_is_none() -> None:
    assert connect_of(speaking_for(NoCredential())).auth_method_name == "none"
