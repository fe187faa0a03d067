"""Makes findings and advice from responses to CONNECT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.insecure import Insecure
from gateway.doctor.pulsar.hello import SPOKEN, Accepted, Answer, Rejected
from gateway.doctor.reach import Unreached, judge_unreached
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.urls import write

UNAUTHENTICATED = ServerError.AuthenticationError
UNAUTHORIZED = ServerError.AuthorizationError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BrokerAnswers:
    """The outcome of each kind of CONNECT at one broker; None: this kind was not sent.

    `anonymous`: CONNECT without a credential. `alone`: with the gateway's credential, for the
    gateway itself. `proxied`: with the gateway's credential, on behalf of a client.
    """

    anonymous: Answer
    alone: Answer | None = None
    proxied: Answer | None = None

    @property
    def best(self) -> Answer:
        """Return the outcome of a CONNECT that the broker accepted; if it accepted none, the
        outcome of the CONNECT without a credential."""
        given = [
            answer for answer in (self.proxied, self.alone, self.anonymous) if answer is not None
        ]
        return next((answer for answer in given if isinstance(answer, Accepted)), given[-1])


# -- brokers ---------------------------------------------------------------------------------


def judge_broker(
    check: str, broker: Address, answer: Accepted | Rejected | Stranger | Unreached, seconds: float
) -> Finding:
    """Return the finding about one address of a broker: a Pulsar broker responds there, or why none
    does. `broker`: the broker as the configuration names it. `seconds`: how long it took to
    connect."""
    match answer:
        case Accepted(server, protocol, largest):
            size = f", messages up to {largest / MIB:.3g} MiB" if largest else ""
            return ok(check, f"{server}, protocol {protocol}{size}; {_took(seconds)}")
        case Rejected(code, text) if code in (UNAUTHENTICATED, UNAUTHORIZED):
            return ok(check, f"speaks Pulsar, and wants to know who asks; {_took(seconds)}")
        case Rejected(code, text):
            return fail(check, f"refuses: {describe(Rejected(code, text))}", _refusal_remedy(code))
        case Stranger():
            return _judge_peer(check, broker, answer)
        case Unreached(code):
            return judge_unreached(check, broker, code)
        case _:
            assert_never(answer)


def describe(error: Rejected) -> str:
    """Return a broker's ERROR as text for a finding."""
    names: dict[int | None, str] = {value: name for name, value in ServerError.items()}
    names[None] = "an error that is not known here"
    name = names.get(error.code, f"error {error.code}")
    return f"{name}: {error.text}" if error.text else name


def _took(seconds: float) -> str:
    return f"connected in {seconds * 1000:.0f} ms"


def _refusal_remedy(code: int | None) -> str:
    if code == ServerError.ServiceNotReady:
        return "It is starting or stopping: try again in a minute, then read the broker's log."
    return "The broker's log has the reason."


def _judge_peer(check: str, broker: Address, peer: Stranger) -> Finding:
    port = "port with TLS" if broker.tls else "plain port"
    setting, usual = ("brokerServicePortTls", 6651) if broker.tls else ("brokerServicePort", 6650)
    detail = f"{peer.words(SPOKEN)}: not a broker's {port}"
    match peer:
        case Stranger.TLS:
            remedy = "If it is brokerServicePortTls (6651), name it by its URL with TLS:"
            return fail(check, detail, remedy, f"brokers: {write(broker, tls=True)}")
        case Stranger.PLAIN:
            remedy = (
                "Name brokerServicePortTls, usually 6651; or, if clear text may pass between "
                "gateway and broker:"
            )
            return fail(check, detail, remedy, f"brokers: {write(broker, tls=False)}")
        case Stranger.HTTP:
            web = "webServicePortTls (8443)" if broker.tls else "webServicePort (8080)"
            remedy = f"It may be the broker's {web}: name {setting}, usually {usual}."
            return fail(check, detail, remedy)
        case _:
            wants = " Or it wants a certificate of the gateway, without a word." * broker.tls
            remedy = (
                f"See that the port is the broker's {setting} ({usual}), and that what lies "
                f"between (a balancer, a mesh) has a broker behind it.{wants}"
            )
            return fail(check, detail, remedy)


# -- access ----------------------------------------------------------------------------------


def judge_pass_through(check: str, answers: BrokerAnswers) -> Finding | None:
    """Return the finding about clients that authenticate at the broker themselves (pass-through
    mode); None if there was an unrelated error, or no response."""
    match answers.anonymous:
        case Accepted():
            return ok(check, "lets everybody in, without a credential")
        case Rejected(code, _) if code in (UNAUTHENTICATED, UNAUTHORIZED):
            return ok(check, "wants authentication; clients have to bring it")
        case _:
            return None


def judge_verified(
    check: str, answers: BrokerAnswers, role: str | None, *, forward: bool
) -> Finding | None:
    """Return the finding about connections that the gateway makes on behalf of verified clients;
    None if no such connection was tried.

    `role`: the role of the gateway's credential; None if the credential states none. `forward`: the
    tokens of clients are forwarded to the broker.
    """
    named = f'the role "{role}"' if role else "the gateway's role"
    match answers.proxied:
        case Accepted():
            return _judge_accepted(check, answers, named, role, forward=forward)
        case Rejected(code, _) as error if code == UNAUTHENTICATED:
            return _judge_credential(check, answers, error, forward=forward)
        case Rejected(code, _) as error if code == UNAUTHORIZED:
            return _judge_role(check, answers, error, named, role)
        case Rejected(code, _) as error:
            return fail(check, f"refuses the gateway: {describe(error)}", _refusal_remedy(code))
        case Stranger() | Unreached() | Insecure():
            return fail(
                check,
                "does not answer the gateway, though it answers others",
                "The broker's log has the reason.",
            )
        case None:
            return None
        case _:
            assert_never(answers.proxied)


def _judge_accepted(
    check: str, answers: BrokerAnswers, named: str, role: str | None, *, forward: bool
) -> Finding:
    if isinstance(answers.anonymous, Accepted):
        return warn(
            check,
            "lets the gateway in, and everybody without a credential too",
            "See that nobody but the gateway can reach the broker, or in broker.conf:",
            "authenticationEnabled=true",
        )
    if isinstance(answers.alone, Accepted):
        return warn(
            check,
            f"accepts the credential of {named}; authorization is off, so every client may do all",
            "If that is not meant, in broker.conf:",
            f"authorizationEnabled=true\nproxyRoles={role or 'ROLE-OF-THE-GATEWAY'}",
        )
    if forward:
        return warn(
            check,
            f"accepts {named} as a proxy, and does not look at the tokens that are forwarded",
            "Forwarding has no effect so: identity.mode: verify, or in broker.conf:",
            "authenticateOriginalAuthData=true",
        )
    return ok(check, f"accepts the credential, and {named} as a proxy")


def _judge_credential(
    check: str, answers: BrokerAnswers, error: Rejected, *, forward: bool
) -> Finding:
    if answers.alone is None:
        return fail(
            check,
            f"wants a credential, and the gateway has none ({describe(error)})",
            "Name one in this cluster:",
            "credential: {token_file: secrets/gateway.token}",
        )
    if not _is_known(answers.alone):
        return fail(
            check,
            f"does not accept the gateway's credential ({describe(error)})",
            "See that the token has not expired, and was signed with the key that the brokers "
            "verify with (tokenSecretKey or tokenPublicKey in broker.conf).",
        )
    if forward:
        return ok(check, "accepts the credential, and verifies forwarded tokens itself")
    return fail(
        check,
        f"accepts the credential, but wants each client's own token too ({describe(error)})",
        "identity.mode: verify-and-forward at the listener, or in broker.conf:",
        "authenticateOriginalAuthData=false",
    )


def _is_known(alone: Answer) -> bool:
    """Return whether the broker accepted the credential by itself."""
    return isinstance(alone, Accepted) or (
        isinstance(alone, Rejected) and alone.code == UNAUTHORIZED
    )


def _judge_role(
    check: str, answers: BrokerAnswers, error: Rejected, named: str, role: str | None
) -> Finding:
    if isinstance(answers.alone, Accepted):
        return fail(
            check,
            f"accepts the credential, but {named} may not speak for others there "
            f"({describe(error)})",
            "In broker.conf of every broker, and restart them:",
            f"proxyRoles={role or 'ROLE-OF-THE-GATEWAY'}",
        )
    return fail(
        check,
        f"does not let the gateway speak for a client ({describe(error)})",
        "See proxyRoles in broker.conf; the broker's log has the reason.",
    )
