"""One CONNECT and its answer: what is said, and what it means that something else comes back.

The commands are those of the gateway itself, spoken for a client that there is not.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from struct import Struct

from gateway import __version__
from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import SealedNames
from gateway.brokers.seal import SealKey
from gateway.control.services import ClusterParts, ListenerServices
from gateway.identity.credential import NoCredential, OwnCredential
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
    Refusal,
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

DOCTOR = "gateway-doctor"
"""For whom we speak: a principal that no broker gives any rights."""

VERSION = f"broker-gateway {__version__} doctor"

PROTOCOL = 21
"""The newest version that brokers of today know; each answers with the smaller one of both."""

_NOBODY = Credential("none", b"")

_ROUNDS = 10
"""Frames until CONNECTED, as `context.Bounds` has it."""

_LONGEST_TEXT = 200
"""Characters of a peer's text. Java's carry a whole chain of exceptions."""

_total = Struct(">I").unpack_from


# -- what can come back ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Welcome:
    """CONNECTED. `largest`: bytes of a message, 0 where the broker does not say."""

    server: str
    protocol: int
    largest: int


@dataclass(frozen=True, slots=True)
class No:
    """ERROR, with its code and text. `code` None: one that this version does not know."""

    code: int | None
    text: str


class Oddity(Enum):
    """What a peer that is no Pulsar broker seems to be."""

    TLS = "speaks TLS"
    HTTP = "speaks HTTP"
    SILENT = "accepts, and says nothing"
    CLOSED = "accepts, and closes without a word"
    STRANGE = "answers in a protocol that is not Pulsar's"


@dataclass(frozen=True, slots=True)
class Unreached:
    """No connection. `code`: an `errno`; None: no answer in time."""

    code: int | None


Answer = Welcome | No | Oddity | Unreached


# -- who speaks ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """One way to say who we are: the listener that would serve a client, and that client."""

    listener: ListenerContext
    client: Client

    def greeting(self) -> bytes:
        """The CONNECT."""
        frame = self.client.greeting(self.listener)
        assert isinstance(frame, bytes)  # only services without credential denies it; ours has one
        return frame

    def proof(self) -> Credential | None:
        """What answers a challenge; None: we have nothing to show."""
        proof = self.client.proof(self.listener, opened=False)
        return None if isinstance(proof, Denial) or proof.method == "none" else proof


def anonymous() -> Probe:
    """A client without a credential, passed through."""
    return _caller(Mode.PASS_THROUGH, NoCredential(), _NOBODY)


def alone(own: OwnCredential) -> Probe:
    """The gateway's own credential, and nobody that it speaks for."""
    return _caller(Mode.PASS_THROUGH, own, own.current())


def speaking_for(own: OwnCredential) -> Probe:
    """The gateway, and a client that it verified."""
    return _caller(Mode.VERIFY, own, _NOBODY)


def _caller(mode: Mode, own: OwnCredential, shown: Credential) -> Probe:
    connect = CommandConnect(client_version=VERSION, protocol_version=PROTOCOL)
    connect.auth_method_name = shown.method
    connect.auth_data = shown.data
    names = SealedNames(DOCTOR, [SealKey.random()])
    parts = ClusterParts(DOCTOR, names, LearnedHosts(PULSAR), own, AccountBook(), ClusterFigures())
    listener = ListenerContext(
        services=ListenerServices(parts, {}), commands=COMMANDS, mode=mode, version=VERSION
    )
    return Probe(listener, Client(connect, Principal(DOCTOR, verified=True), shown, NOBODY))


# -- the conversation ------------------------------------------------------------------------


def frame_length(head: bytes | bytearray) -> int:
    """See `contract.Entry`."""
    return _total(head)[0] + 4 if len(head) >= 4 else 0


def greet(caller: Probe) -> Generator[Step, StepResult, Answer]:
    """Say who we are, hear what a broker makes of it. Raises `PeerError`."""
    dialled = yield Dial()
    if not isinstance(dialled, Dialled):
        return Unreached(None)
    yield Transmit(Peer.BROKER, caller.greeting())
    for _ in range(_ROUNDS):
        frame = yield Receive(Peer.BROKER)
        if not isinstance(frame, bytes):
            return _silence(frame)
        command = decode(frame)
        if kind_of(frame) != BaseCommand.AUTH_CHALLENGE:
            return _understood(command, kind_of(frame))
        proof = caller.proof()
        if proof is None:
            return No(ServerError.AuthenticationError, "asks for a credential")
        yield Transmit(Peer.BROKER, auth_response(proof, VERSION))
    return No(ServerError.AuthenticationError, "asks for the credential without end")


def _understood(command: BaseCommand, kind: int) -> Answer:
    if kind == BaseCommand.CONNECTED:
        said = command.connected
        return Welcome(plain(said.server_version), said.protocol_version, said.max_message_size)
    if kind == BaseCommand.ERROR:
        code = command.error.error if command.error.HasField("error") else None
        return No(code, plain(command.error.message))
    return Oddity.STRANGE


def plain(text: str | bytes) -> str:
    """A peer's text for a terminal: short, on one line, and without anything that steers one.

    Protobuf hands out bytes where it is not UTF-8.
    """
    decoded = text.decode(errors="replace") if isinstance(text, bytes) else text
    shown = "".join(letter if letter.isprintable() else " " for letter in decoded[:_LONGEST_TEXT])
    return " ".join(shown.split())


def _silence(denial: StepResult) -> Oddity:
    refusal = denial.refusal if isinstance(denial, Denial) else None
    return _SILENCES.get(refusal, Oddity.STRANGE)  # strange: a frame that is far too large


_SILENCES: dict[Refusal | None, Oddity] = {
    Refusal.TIMEOUT: Oddity.SILENT,
    Refusal.CLOSED: Oddity.CLOSED,
}


def recognized(oddity: Oddity, received: bytes) -> Oddity:
    """What speaks, by its first bytes, where there are any."""
    if received.startswith((b"HTTP/", b"<")):  # old servers send a page without a head
        return Oddity.HTTP
    if received[:2] in (b"\x15\x03", b"\x16\x03"):  # a TLS record: alert, handshake
        return Oddity.TLS
    return Oddity.STRANGE if received else oddity
