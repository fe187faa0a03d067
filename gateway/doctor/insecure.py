"""Explains why a TLS handshake with a broker fails, and what to do about that, without I/O."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import Enum, auto

from gateway.config import model
from gateway.doctor.certificates import Facts, describe, ends_soon, listed
from gateway.doctor.files import format_date
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.tls.handshake import reason_of


class Trouble(Enum):
    """Why there is no TLS connection.

    `AUTHORITY`: the authority that signed the peer's certificate is not trusted. `NAME`: the peer's
    certificate is for other hosts. `PURPOSE`: the peer's certificate is not for servers. `NONE`:
    the peer does not speak TLS. `WANTED`: the peer wants a certificate of the gateway, or does not
    accept the certificate that the gateway has shown. `AMBIGUOUS`: either `WANTED`, or both sides
    have no cipher in common. `OLD`: the peer speaks only old versions of TLS. `SILENT`: the peer
    did not respond in time.
    """

    AUTHORITY = auto()
    NAME = auto()
    EXPIRED = auto()
    TOO_EARLY = auto()
    PURPOSE = auto()
    NONE = auto()
    WANTED = auto()
    AMBIGUOUS = auto()
    OLD = auto()
    SILENT = auto()
    OTHER = auto()


OF_CERTIFICATE = frozenset(
    {Trouble.AUTHORITY, Trouble.NAME, Trouble.EXPIRED, Trouble.TOO_EARLY, Trouble.PURPOSE}
)
"""Troubles with the certificate that the peer shows."""


@dataclass(frozen=True, slots=True)
class Insecure:
    """A failed TLS handshake. `trouble`: the kind of the reason. `words`: the reason in the words
    of OpenSSL. `shown`: the peer's certificate; None if it is unknown."""

    trouble: Trouble
    words: str = ""
    shown: Facts | None = None


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a successful TLS handshake agreed on. `shown`: the peer's certificate; None if it cannot
    be read."""

    version: str
    cipher: str
    shown: Facts | None


# -- errors of OpenSSL -----------------------------------------------------------------------

# x509_vfy.h of OpenSSL; `ssl` has no names for them.
_VERIFY_CODES = {
    2: Trouble.AUTHORITY,  # unable to get issuer certificate
    9: Trouble.TOO_EARLY,
    10: Trouble.EXPIRED,
    18: Trouble.AUTHORITY,  # self-signed certificate
    19: Trouble.AUTHORITY,  # self-signed certificate in chain
    20: Trouble.AUTHORITY,  # unable to get local issuer certificate
    21: Trouble.AUTHORITY,  # unable to verify the first certificate
    26: Trouble.PURPOSE,
    62: Trouble.NAME,  # hostname mismatch
    64: Trouble.NAME,  # IP address mismatch
}

_REASONS = {
    "SSLV3_ALERT_HANDSHAKE_FAILURE": Trouble.AMBIGUOUS,
    "TLSV1_ALERT_INTERNAL_ERROR": Trouble.AMBIGUOUS,  # of Java, for a wrong certificate
    "TLSV1_ALERT_PROTOCOL_VERSION": Trouble.OLD,
    "UNSUPPORTED_PROTOCOL": Trouble.OLD,
    "TLSV1_ALERT_UNKNOWN_CA": Trouble.WANTED,
    "TLSV1_ALERT_ACCESS_DENIED": Trouble.WANTED,
    "WRONG_VERSION_NUMBER": Trouble.NONE,
    "HTTP_REQUEST": Trouble.NONE,
    "PACKET_LENGTH_TOO_LONG": Trouble.NONE,
    "RECORD_LAYER_FAILURE": Trouble.NONE,
}

_CLOSED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""The errors of a peer that closes the connection within the handshake. Python 3.11.2, which Debian
12 has, raises `SSLZeroReturnError`; later versions raise it only after an orderly close."""


def classify(error: OSError) -> Insecure:
    """Return the failed TLS handshake, with the reason that `error` states. The handshake, or the
    first read after it, has raised the error."""
    return Insecure(_trouble_of(error), reason_of(error))


def _trouble_of(error: OSError) -> Trouble:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _VERIFY_CODES.get(error.verify_code, Trouble.OTHER)
    if isinstance(error, _CLOSED) or not isinstance(error, ssl.SSLError):
        return Trouble.NONE  # closed or reset
    reason = error.reason or ""
    if "ALERT" in reason and "CERTIFICATE" in reason:
        return Trouble.WANTED
    return _REASONS.get(reason, Trouble.OTHER)


# -- findings --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trust:
    """The TLS settings by which the gateway trusts the brokers of a cluster. `cluster`: the name of
    the cluster. `host`: the host that the gateway dials."""

    cluster: str
    settings: model.ClusterTls
    host: str

    @property
    def place(self) -> str:
        """Return where these TLS settings stand in the configuration file, as a dotted path."""
        return f"clusters.{self.cluster}.tls"


def judge_agreed(check: str, agreed: Agreed, now: float) -> Finding:
    """Return the finding about a successful handshake."""
    shown, detail = agreed.shown, f"{agreed.version}, {agreed.cipher}"
    if shown is None:
        return ok(check, detail)
    detail = f"{detail}; its certificate is {describe(shown)}"
    if ends_soon(shown, now):
        return warn(check, f"{detail}, expires soon", _RENEW)
    return ok(check, detail)


def judge_insecure(check: str, insecure: Insecure, trust: Trust, now: float) -> Finding:
    """Return the finding about a failed handshake with a broker."""
    match insecure.trouble:
        case Trouble.AUTHORITY:
            return _judge_authority(check, insecure.shown, trust)
        case Trouble.NAME:
            return _judge_name(check, insecure.shown, trust)
        case Trouble.EXPIRED | Trouble.TOO_EARLY | Trouble.PURPOSE:
            return _judge_shown(check, insecure.trouble, insecure.shown, now)
        case Trouble.WANTED | Trouble.AMBIGUOUS:
            return _judge_wanted(check, insecure, trust)
        case Trouble.NONE:
            detail = f"does not speak TLS there ({insecure.words})"
            return fail(check, detail, "Name the port with TLS, or a URL without TLS.")
        case Trouble.OLD:
            detail = "speaks only versions of TLS that are older than 1.2, which are broken"
            return fail(check, detail, "Let it speak 1.2 or 1.3.")
        case Trouble.SILENT:
            detail = "accepts, and does not answer the TLS handshake"
            return fail(check, detail, "See that the port is one with TLS; its log has the reason.")
        case Trouble.OTHER:
            detail = f"the TLS handshake fails: {insecure.words}"
            return fail(check, detail, "The broker's log has the reason.")


def _judge_authority(check: str, shown: Facts | None, trust: Trust) -> Finding:
    issuer = "an authority" if shown is None else shown.issuer
    signed = "that it signed itself" if shown and shown.is_own_issuer else f"that {issuer} signed"
    known = trust.settings.ca_file
    if known is None:
        return fail(
            check,
            f"shows a certificate {signed}, which this machine does not trust",
            f"If it is your broker, name the file of who signs for your brokers. {_INTERMEDIATE} "
            "In this cluster:",
            "tls: {ca_file: secrets/brokers-ca.crt}",
        )
    return fail(
        check,
        f"shows a certificate {signed}, which {known.name} does not have",
        f"If it is your broker, add the certificate of who signed it to {trust.place}.ca_file. "
        f"{_INTERMEDIATE}",
    )


_INTERMEDIATE = "If that is an intermediate authority, let the broker show its certificate too."


def _judge_name(check: str, shown: Facts | None, trust: Trust) -> Finding:
    whose = "for others" if shown is None else f"for {listed(shown.names) or 'no host'}"
    return fail(
        check,
        f"shows a certificate {whose}, and not for {trust.host}",
        f"Name the broker by one of these, or set {trust.place}.verify_host: false, with which any "
        "broker of this authority may answer.",
    )


def _judge_shown(check: str, trouble: Trouble, shown: Facts | None, now: float) -> Finding:
    if trouble is Trouble.PURPOSE:
        detail = "shows a certificate that is not for servers"
        return fail(check, detail, "Have it made with the extended key usage serverAuth.")
    if trouble is Trouble.EXPIRED:
        if shown is not None and shown.ends < now:
            detail = f"shows a certificate that expired {format_date(shown.ends)}"
        else:
            detail = "shows a certificate behind which an expired one is"
        return fail(check, detail, _RENEW)
    begins = "" if shown is None else f" before {format_date(shown.begins)}"
    return fail(
        check,
        f"shows a certificate that is not valid{begins or ' yet'}",
        "Set this machine's clock right, or the broker's when it is renewed.",
    )


_RENEW = "Renew it at the broker; with a valid one, set this machine's clock right."


def _judge_wanted(check: str, insecure: Insecure, trust: Trust) -> Finding:
    shows = trust.settings.certificate is not None
    if insecure.trouble is Trouble.AMBIGUOUS:
        accepted = "does not accept the gateway's certificate" if shows else "wants a certificate"
        return fail(
            check,
            f"ends the TLS handshake ({insecure.words}): it {accepted}, or has no cipher in common",
            f"The broker's log has the reason. The gateway shows {trust.place}.certificate.",
        )
    if shows:
        return fail(
            check,
            f"does not accept the gateway's certificate ({insecure.words})",
            f"See that {trust.place}.certificate is valid, and that the broker trusts who signed "
            "it; its log has the reason.",
        )
    return fail(
        check,
        f"wants a certificate of the gateway, and the gateway has none ({insecure.words})",
        f"Name one that the broker trusts, as {trust.place}.certificate:",
        "certificate: {certificate_file: secrets/gateway.crt, key_file: secrets/gateway.key}",
    )
