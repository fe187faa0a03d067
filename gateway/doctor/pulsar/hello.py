"""One CONNECT and its response: the frames to send, and the meaning of each response.

The commands are those that the gateway itself would send, on behalf of a client that does not
exist.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from struct import Struct

from gateway import __version__
from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import SealedNames
from gateway.brokers.seal import SealKey
from gateway.control.services import ClusterParts, ListenerServices
from gateway.doctor.insecure import Insecure
from gateway.doctor.reach import Unreached
from gateway.doctor.strangers import Stranger, read_silence
from gateway.identity.credential import NoCredential, StoredCredential
from gateway.policy.accounts import AccountBook
from gateway.telemetry.figures import ClusterFigures
from gateway.wire.contract import (
    Credential,
    Denial,
    Dial,
    Dialled,
    Peer,
    Principal,
    Receive,
    Step,
    StepResult,
    Transmit,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect, ServerError
from gateway.wire.pulsar.commands import auth_response, decode, kind_of
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.subject import NOBODY

SPOKEN = "Pulsar"
"""The protocol's name, in texts."""

DOCTOR = "gateway-doctor"
"""The principal of the imaginary client, to which no broker gives rights."""

VERSION = f"broker-gateway {__version__} doctor"

PROTOCOL = 21
"""The newest version that current brokers know; a broker responds with the smaller of both
versions."""

_NOBODY = Credential("none", b"")

_ROUNDS = 10
"""Most frames until CONNECTED, as in `context.Bounds`."""

_LONGEST_TEXT = 200
"""Characters of a peer's text. Java's contain a whole chain of exceptions."""

_read_length = Struct(">I").unpack_from


# -- answers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    """A broker's response CONNECTED. `server`, `protocol`: the versions of the broker and of its
    protocol. `largest`: bytes of the largest message that the broker accepts; 0 if it does not say.
    """

    server: str
    protocol: int
    largest: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A broker's response ERROR. `code`: a `ServerError`; None if this gateway does not know the
    code. `text`: the broker's message, without control characters."""

    code: int | None
    text: str


Answer = Accepted | Rejected | Stranger | Unreached | Insecure


# -- probes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """One way to send CONNECT: as the gateway would send it for `client` at `listener`."""

    listener: ListenerContext
    client: Client

    def greeting(self) -> bytes:
        """Return the CONNECT frame."""
        frame = self.client.greeting(self.listener)
        assert isinstance(frame, bytes)  # it is denied only without a credential
        return frame

    def proof(self) -> Credential | None:
        """Return the credential with which to respond to a broker's challenge; None if there is
        none."""
        proof = self.client.proof(self.listener, opened=False)
        return None if isinstance(proof, Denial) or proof.method == "none" else proof


def anonymous(*, tls: bool = False) -> Probe:
    """Return the probe that connects as a client without a credential does in pass-through mode.
    `tls`: lookups use the brokers' URLs with TLS."""
    return _probe(Mode.PASS_THROUGH, NoCredential(), _NOBODY, tls=tls)


def alone(own: StoredCredential) -> Probe:
    """Return the probe that presents the gateway's credential, and acts for the gateway itself."""
    return _probe(Mode.PASS_THROUGH, own, own.current())


def speaking_for(own: StoredCredential, *, tls: bool = False) -> Probe:
    """Return the probe that presents the gateway's credential, and acts for a verified client.
    `tls`: see `anonymous`."""
    return _probe(Mode.VERIFY, own, _NOBODY, tls=tls)


def _probe(
    mode: Mode, own: StoredCredential, credential: Credential, *, tls: bool = False
) -> Probe:
    connect = CommandConnect(client_version=VERSION, protocol_version=PROTOCOL)
    connect.auth_method_name = credential.method
    connect.auth_data = credential.data
    names = SealedNames(DOCTOR, [SealKey.random()])
    parts = ClusterParts(DOCTOR, names, LearnedHosts(PULSAR), own, AccountBook(), ClusterFigures())
    listener = ListenerContext(
        services=ListenerServices(parts, {}),
        commands=COMMANDS,
        mode=mode,
        version=VERSION,
        brokers_tls=tls,
    )
    return Probe(listener, Client(connect, Principal(DOCTOR, verified=True), credential, NOBODY))


# -- the conversation ------------------------------------------------------------------------


def frame_length(head: bytes | bytearray) -> int:
    """Return the size of a frame from its first bytes; 0: more bytes are needed. See
    `contract.Entry`."""
    return _read_length(head)[0] + 4 if len(head) >= 4 else 0


def greet(
    probe: Probe,
) -> Generator[Step, StepResult, Accepted | Rejected | Stranger | Unreached]:
    """Send CONNECT, respond to the broker's challenges, and return the outcome. Raises `PeerError`
    for a malformed response."""
    dialled = yield Dial()
    if not isinstance(dialled, Dialled):
        return Unreached(None)
    yield Transmit(Peer.BROKER, probe.greeting())
    for _ in range(_ROUNDS):
        frame = yield Receive(Peer.BROKER)
        if not isinstance(frame, bytes):
            return read_silence(frame)
        command = decode(frame)
        if kind_of(frame) != BaseCommand.AUTH_CHALLENGE:
            return _read_answer(command, kind_of(frame))
        proof = probe.proof()
        if proof is None:
            return Rejected(ServerError.AuthenticationError, "asks for a credential")
        yield Transmit(Peer.BROKER, auth_response(proof, VERSION))
    return Rejected(ServerError.AuthenticationError, "asks for the credential without end")


def _read_answer(command: BaseCommand, kind: int) -> Accepted | Rejected | Stranger:
    if kind == BaseCommand.CONNECTED:
        connected = command.connected
        return Accepted(
            printable(connected.server_version),
            connected.protocol_version,
            connected.max_message_size,
        )
    if kind == BaseCommand.ERROR:
        code = command.error.error if command.error.HasField("error") else None
        return Rejected(code, printable(command.error.message))
    return Stranger.STRANGE


def printable(text: str | bytes) -> str:
    """Return a peer's text in a form for terminals: short, on one line, and without control
    characters.

    The text may be bytes, because protobuf returns bytes if a string is not UTF-8.
    """
    decoded = text.decode(errors="replace") if isinstance(text, bytes) else text
    shown = "".join(letter if letter.isprintable() else " " for letter in decoded[:_LONGEST_TEXT])
    return " ".join(shown.split())
