"""The entry of `memo`: the opening of a connection, its traces, and the plugin."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.address import Address, Scheme
from gateway.wire.contract import (
    Credential,
    Denial,
    Dial,
    Dialled,
    Direction,
    EndReason,
    Entry,
    Opened,
    Opening,
    Origin,
    Peer,
    Principal,
    Receive,
    Refusal,
    Refused,
    Step,
    StepResult,
    Transmit,
    Wait,
    settled,
)
from gateway.wire.plugin import EntrySettings, Mode, Plugin
from gateway.wire.services import Again
from gateway.wire.subject import Caller, Subject
from tests.second.memo import (
    ANSWER,
    HEAD,
    LONGEST_HEAD,
    Body,
    Kind,
    error_of,
    frame,
    frame_length,
    head_of,
    places_of,
    read_sections,
    refusal,
    text,
    topics_of,
)
from tests.second.session import MemoSession, cleaned
from tests.second.topics import read_topic

SCHEMES = {"memo": Scheme(7171), "memo+ssl": Scheme(7172, tls=True)}


@dataclass(frozen=True, slots=True)
class MemoEntry:
    """See `contract.Entry`."""

    settings: EntrySettings

    def frame_length(self, head: bytes | bytearray) -> int:
        """See `contract.Entry`."""
        return frame_length(head)

    def open(self, origin: Origin) -> Opening:
        """See `contract.Entry`."""
        said = yield Receive(Peer.CLIENT)
        if not isinstance(said, bytes):
            return _refuse_silent(said)
        try:
            return (yield from _hello(self.settings, origin, said))
        except PeerError as violation:
            denial = Denial(Refusal.UNSUPPORTED, str(violation))
            return _refused(0, EndReason.CLIENT_VIOLATION, denial)

    def refuse(self, denial: Denial) -> bytes:
        """See `contract.Entry`."""
        return refusal(0, denial)

    def describe(self, direction: Direction, frame: bytes) -> str:
        """See `contract.Entry`."""
        return describe(frame)


# -- opening -----------------------------------------------------------------------------------


def _hello(settings: EntrySettings, origin: Origin, said: bytes) -> Opening:
    """Continue the opening from the client's HELLO to the broker's response."""
    id, kind = head_of(said)
    if kind != Kind.HELLO:
        raise PeerError("a connection begins with HELLO")
    body = Body(said)
    _, library, token = body.text(), body.text(), body.raw()
    body.end()
    principal = yield from _identify(settings, origin, token)
    if isinstance(principal, Denial):
        return _refused(id, EndReason.AUTHENTICATION_FAILED, principal)
    known = principal.name or None
    caller = Caller("memo", None, None, origin.id, origin.host, known, library[:128])
    subject = Subject(settings.services.complete(caller))
    refused = yield from _pace(settings, subject, id)
    if refused is not None:
        return refused
    if settings.mode is not Mode.PASS_THROUGH:
        ours = settings.services.credential()
        if isinstance(ours, Denial):
            return _refused(id, EndReason.NO_BROKER, ours)
        proof = token if settings.mode is Mode.VERIFY_AND_FORWARD else ours.data
        said = frame(id, Kind.HELLO, text(principal.name) + text(library) + text(proof))
    dialled = yield Dial(_broker(settings, origin.reached))
    if not isinstance(dialled, Dialled):
        assert isinstance(dialled, Denial)
        return _refused(id, EndReason.NO_BROKER, dialled)
    yield Transmit(Peer.BROKER, said)
    response = yield Receive(Peer.BROKER)
    return (yield from _welcome(settings, subject, principal.expires_at, id, response))


def _identify(
    settings: EntrySettings, origin: Origin, token: bytes
) -> Generator[Step, StepResult, Principal | Denial]:
    """Return the client's principal; an empty name if only the broker authenticates."""
    if settings.mode is Mode.PASS_THROUGH:
        return Principal("", verified=False)
    response = settings.services.authenticate(Credential("token", token), origin.host)
    return (yield from settled(response))


def _pace(
    settings: EntrySettings, subject: Subject, id: int
) -> Generator[Step, StepResult, Refused | None]:
    """Wait if rules limit the rate of new connections; return a refusal if that takes too long."""
    if Action.CONNECT not in settings.services.paced:
        return None
    response = settings.services.wait(Action.CONNECT, subject)
    while isinstance(response, Again):
        yield Wait(response.seconds)
        response = settings.services.wait(Action.CONNECT, subject, response)
    if isinstance(response, Denial):
        return _refused(id, EndReason.TOO_MANY_CONNECTS, response)
    yield Wait(response)
    return None


def _broker(settings: EntrySettings, reached: Address) -> Address | None:
    """Return the broker that the reached address stands for; None: any."""
    found = settings.services.open(str(reached))
    return None if isinstance(found, Denial) else found


def _welcome(
    settings: EntrySettings, subject: Subject, expires: float | None, id: int, response: StepResult
) -> Opening:
    if not isinstance(response, bytes):
        denial = Denial(Refusal.NOT_READY, "the broker did not answer")
        return _refused(id, EndReason.BROKER_LOST, denial)
    kind = head_of(response)[1] if len(response) >= HEAD.size else 0
    if kind == Kind.ERROR:
        return Refused(
            EndReason.BROKER_REFUSED, cleaned(response, settings), error_of(response).text
        )
    if kind != Kind.HELLO | ANSWER:
        return Refused(EndReason.BROKER_VIOLATION)
    yield Transmit(Peer.CLIENT, response)
    return Opened(MemoSession(settings, subject, expires))


def _refuse_silent(denial: StepResult) -> Refused:
    assert isinstance(denial, Denial)
    reasons = {
        Refusal.TIMEOUT: EndReason.HANDSHAKE_TIMEOUT,
        Refusal.TOO_MANY: EndReason.FRAME_TOO_LARGE,
    }
    return _refused(0, reasons.get(denial.refusal, EndReason.CLIENT_CLOSED), denial)


def _refused(id: int, reason: EndReason, denial: Denial) -> Refused:
    return Refused(reason, refusal(id, denial), denial.text)


# -- traces ------------------------------------------------------------------------------------


def describe(frame: bytes) -> str:
    """Return a description of a frame, which may be cut, with tokens masked."""
    try:
        id, kind = head_of(frame)
        known = Kind(kind if kind == Kind.ERROR else kind & ~ANSWER)
        response = " answer" if ANSWER <= kind < Kind.ERROR else ""
        return f"{known.name}{response} {id} {_describe_body(kind, frame)}".strip()
    except (PeerError, ValueError):
        return "not decodable"


def _describe_body(kind: int, frame: bytes) -> str:
    match kind:
        case Kind.HELLO:
            body = Body(frame)
            return f"principal={body.text()} library={body.text()} token=***"
        case Kind.WHERE | Kind.GET:
            return " ".join(topics_of(frame))
        case Kind.PUT | 0x84:
            cut = frame[: LONGEST_HEAD + HEAD.size + 2]
            found = read_sections(cut, 0, len(cut), frame_length(frame)) or []
            return " ".join(f"{it.topic.decode(errors='replace')}:{it.messages}" for it in found)
        case 0x82:
            return " ".join(f"{topic}@{host}:{port}" for topic, host, port in places_of(frame))
        case Kind.ERROR:
            return error_of(frame).text
    return ""


# -- the plugin --------------------------------------------------------------------------------


def _enter(settings: EntrySettings) -> Entry:
    return MemoEntry(settings)


PLUGIN = Plugin(
    name="memo",
    schemes=SCHEMES,
    topic_schemes=(),
    read_topic=read_topic,
    actions=frozenset(Action),
    enter=_enter,
    checks="tests.second.checks",
    settings=frozenset(("clusters.names", "clusters.credential")),
)
