"""What answers to CONNECT mean, and what to do about them: answers in, findings out."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import assert_never

from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.hello import Answer, No, Oddity, Unreached, Welcome
from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError

UNAUTHENTICATED = ServerError.AuthenticationError
UNAUTHORIZED = ServerError.AuthorizationError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answers:
    """What one broker says to each way of asking; None: it was not asked so.

    `alone`: the gateway's credential, nobody spoken for. `proxied`: the same for a client.
    """

    anonymous: Answer
    alone: Answer | None = None
    proxied: Answer | None = None

    @property
    def best(self) -> Answer:
        """The one that says most about the peer."""
        given = [it for it in (self.proxied, self.alone, self.anonymous) if it is not None]
        return next((it for it in given if isinstance(it, Welcome)), given[-1])


# -- is there a broker -----------------------------------------------------------------------


def broker(what: str, address: Address, answer: Answer, seconds: float) -> Finding:
    """Whether a Pulsar broker answers at an address."""
    match answer:
        case Welcome(server, protocol, largest):
            size = f", messages up to {largest / MIB:.3g} MiB" if largest else ""
            return ok(what, f"{server}, protocol {protocol}{size}; {_took(seconds)}")
        case No(code, text) if code in (UNAUTHENTICATED, UNAUTHORIZED):
            return ok(what, f"speaks Pulsar, and wants to know who asks; {_took(seconds)}")
        case No(code, text):
            return fail(what, f"refuses: {said(No(code, text))}", _refusal_remedy(code))
        case Oddity():
            return fail(what, f"{answer.value}: not a broker's plain port", _odd_remedy(answer))
        case Unreached(code):
            return unreached(what, address, code)
        case _:
            assert_never(answer)


def unreached(what: str, address: Address, code: int | None) -> Finding:
    """No connection."""
    reason, remedy = _UNREACHED.get(code, (_errno_text(code), _NO_WAY))
    return fail(what, reason, remedy.format(port=address.port))


def said(no: No) -> str:
    """A broker's ERROR in words."""
    name = "an error that is not known here" if no.code is None else _code_name(no.code)
    return f"{name}: {no.text}" if no.text else name


def _code_name(code: int) -> str:
    names: dict[int, str] = {value: name for name, value in ServerError.items()}
    return names.get(code, f"error {code}")


def _took(seconds: float) -> str:
    return f"connected in {seconds * 1000:.0f} ms"


def _errno_text(code: int | None) -> str:
    return f"cannot be connected to: {errno.errorcode.get(code or 0, 'unknown error')}"


_NO_WAY = "See that this machine has a way to the broker's network."

_UNREACHED = {
    errno.ECONNREFUSED: (
        "refuses connections: nothing listens there",
        "See that the broker is up, and that its brokerServicePort is {port}.",
    ),
    errno.EHOSTUNREACH: ("cannot be reached: no route to the host", _NO_WAY),
    errno.ENETUNREACH: ("cannot be reached: this machine has no such network", _NO_WAY),
    None: (
        "does not answer",
        "A firewall or a network policy drops what is sent to port {port}, or the host is down.",
    ),
}


def _refusal_remedy(code: int | None) -> str:
    if code == ServerError.ServiceNotReady:
        return "It is starting or stopping: try again in a minute, then read the broker's log."
    return "The broker's log has the reason."


def _odd_remedy(oddity: Oddity) -> str:
    match oddity:
        case Oddity.TLS:
            return (
                "It may be brokerServicePortTls (6651). The gateway has no TLS to brokers yet: "
                "name brokerServicePort, usually 6650."
            )
        case Oddity.HTTP:
            return (
                "It may be the broker's webServicePort (8080): "
                "name brokerServicePort, usually 6650."
            )
        case _:
            return (
                "See that the port is the broker's brokerServicePort (6650), and that what lies "
                "between (a balancer, a mesh) has a broker behind it."
            )


# -- who is let in ---------------------------------------------------------------------------


def passed_through(what: str, answers: Answers) -> Finding | None:
    """What clients find there that are passed through; None: the broker cannot be spoken to."""
    match answers.anonymous:
        case Welcome():
            return ok(what, "lets everybody in, without a credential")
        case No(code, _) if code in (UNAUTHENTICATED, UNAUTHORIZED):
            return ok(what, "wants authentication; clients have to bring it")
        case _:
            return None


def verified(what: str, answers: Answers, role: str | None, *, forward: bool) -> Finding | None:
    """What the gateway finds there when it speaks for verified clients; None: it did not.

    `role`: of our own credential, where it says one. `forward`: clients' tokens go along.
    """
    named = f'the role "{role}"' if role else "the gateway's role"
    match answers.proxied:
        case Welcome():
            return _welcomed(what, answers, named, role, forward=forward)
        case No(code, _) as no if code == UNAUTHENTICATED:
            return _unauthenticated(what, answers, no, forward=forward)
        case No(code, _) as no if code == UNAUTHORIZED:
            return _unauthorized(what, answers, no, named, role)
        case No(code, _) as no:
            return fail(what, f"refuses the gateway: {said(no)}", _refusal_remedy(code))
        case Oddity() | Unreached():
            return fail(
                what,
                "does not answer the gateway, though it answers others",
                "The broker's log has the reason.",
            )
        case None:
            return None
        case _:
            assert_never(answers.proxied)


def _welcomed(
    what: str, answers: Answers, named: str, role: str | None, *, forward: bool
) -> Finding:
    if isinstance(answers.anonymous, Welcome):
        return warn(
            what,
            "lets the gateway in, and everybody without a credential too",
            "See that nobody but the gateway can reach the broker, or in broker.conf:",
            "authenticationEnabled=true",
        )
    if isinstance(answers.alone, Welcome):
        return warn(
            what,
            f"accepts the credential of {named}; authorization is off, so every client may do all",
            "If that is not meant, in broker.conf:",
            f"authorizationEnabled=true\nproxyRoles={role or 'ROLE-OF-THE-GATEWAY'}",
        )
    if forward:
        return warn(
            what,
            f"accepts {named} as a proxy, and does not look at the tokens that are forwarded",
            "Forwarding has no effect so: identity.mode: verify, or in broker.conf:",
            "authenticateOriginalAuthData=true",
        )
    return ok(what, f"accepts the credential, and {named} as a proxy")


def _unauthenticated(what: str, answers: Answers, no: No, *, forward: bool) -> Finding:
    if answers.alone is None:
        return fail(
            what,
            f"wants a credential, and the gateway has none ({said(no)})",
            "Name one in this cluster:",
            "credential: {token_file: secrets/gateway.token}",
        )
    if not _is_known(answers.alone):
        return fail(
            what,
            f"does not accept the gateway's credential ({said(no)})",
            "See that the token has not expired, and was signed with the key that the brokers "
            "verify with (tokenSecretKey or tokenPublicKey in broker.conf).",
        )
    if forward:
        return ok(what, "accepts the credential, and verifies forwarded tokens itself")
    return fail(
        what,
        f"accepts the credential, but wants each client's own token too ({said(no)})",
        "identity.mode: verify-and-forward at the listener, or in broker.conf:",
        "authenticateOriginalAuthData=false",
    )


def _is_known(alone: Answer) -> bool:
    """Whether the credential by itself was found good."""
    return isinstance(alone, Welcome) or (isinstance(alone, No) and alone.code == UNAUTHORIZED)


def _unauthorized(what: str, answers: Answers, no: No, named: str, role: str | None) -> Finding:
    if isinstance(answers.alone, Welcome):
        return fail(
            what,
            f"accepts the credential, but {named} may not speak for others there ({said(no)})",
            "In broker.conf of every broker, and restart them:",
            f"proxyRoles={role or 'ROLE-OF-THE-GATEWAY'}",
        )
    return fail(
        what,
        f"does not let the gateway speak for a client ({said(no)})",
        "See proxyRoles in broker.conf; the broker's log has the reason.",
    )
