"""What errors of OpenSSL mean, and the advice for each: the errors themselves are real in
`test_tls`."""

from __future__ import annotations

import errno
import ssl

import pytest

from gateway.config.model import ClusterTls
from gateway.doctor.certificates import Facts
from gateway.doctor.files import DAY
from gateway.doctor.finding import Finding, Status
from gateway.doctor.insecure import (
    Agreed,
    Insecure,
    Trouble,
    Trust,
    classify,
    judge_agreed,
    judge_insecure,
)

NOW = 1_800_000_000.0
NONE = ClusterTls()
OWN = ClusterTls.model_validate(
    {"ca_file": "brokers.crt", "certificate": {"certificate_file": "a.crt", "key_file": "a.key"}}
)
SHOWN = Facts("a", "their authority", ("a.example", "b.example"), NOW - 365 * DAY, NOW + 90 * DAY)
EXPIRED = Facts("a", "their authority", ("a.example",), NOW - 365 * DAY, NOW - DAY)


def judged(
    trouble: Trouble, settings: ClusterTls = NONE, shown: Facts | None = SHOWN, words: str = "words"
) -> Finding:
    trust = Trust("main", settings, "pulsar.internal")
    found = judge_insecure("b", Insecure(trouble, words, shown), trust, NOW)
    assert found.status is Status.FAIL
    assert found.remedy
    return found


# -- errors ----------------------------------------------------------------------------------


def unverified(code: int) -> ssl.SSLError:
    error = ssl.SSLCertVerificationError(1, "no")
    error.verify_code, error.verify_message = code, "no"
    return error


def failed(reason: str, kind: type[ssl.SSLError] = ssl.SSLError) -> ssl.SSLError:
    error = kind(1, "no")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (unverified(20), Trouble.AUTHORITY),
        (unverified(18), Trouble.AUTHORITY),
        (unverified(62), Trouble.NAME),
        (unverified(64), Trouble.NAME),
        (unverified(10), Trouble.EXPIRED),
        (unverified(9), Trouble.TOO_EARLY),
        (unverified(26), Trouble.PURPOSE),
        (unverified(66), Trouble.OTHER),
        (failed("TLSV13_ALERT_CERTIFICATE_REQUIRED"), Trouble.WANTED),
        (failed("SSLV3_ALERT_BAD_CERTIFICATE"), Trouble.WANTED),
        (failed("TLSV1_ALERT_UNKNOWN_CA"), Trouble.WANTED),
        (failed("SSLV3_ALERT_HANDSHAKE_FAILURE"), Trouble.AMBIGUOUS),
        (failed("TLSV1_ALERT_PROTOCOL_VERSION"), Trouble.OLD),
        (failed("WRONG_VERSION_NUMBER"), Trouble.NONE),
        (failed("TLSV1_ALERT_INTERNAL_ERROR"), Trouble.AMBIGUOUS),
        (failed("TLSV1_ALERT_DECODE_ERROR"), Trouble.OTHER),
        (failed("UNEXPECTED_EOF_WHILE_READING", ssl.SSLEOFError), Trouble.NONE),
        (failed("TLS/SSL connection has been closed (EOF)", ssl.SSLZeroReturnError), Trouble.NONE),
        (ConnectionResetError(errno.ECONNRESET, "reset"), Trouble.NONE),
    ],
)
def test_errors_are_told_apart(error: OSError, trouble: Trouble) -> None:
    assert classify(error).trouble is trouble


def test_the_words_of_openssl_are_kept() -> None:
    assert classify(failed("TLSV1_ALERT_INTERNAL_ERROR")).words == "tlsv1 alert internal error"


# -- advice ----------------------------------------------------------------------------------


def test_an_unknown_authority_is_named_and_ca_file_advised() -> None:
    found = judged(Trouble.AUTHORITY)
    assert "that their authority signed, which this machine does not trust" in found.detail
    assert found.example == "tls: {ca_file: secrets/brokers-ca.crt}"
    found = judged(Trouble.AUTHORITY, OWN)
    assert found.detail.endswith("which brokers.crt does not have")
    assert "clusters.main.tls.ca_file" in found.remedy


def test_a_self_signed_certificate_is_said_to_be_so() -> None:
    own = Facts("a", "a", ("a",), 0, NOW, is_own_issuer=True)
    assert "that it signed itself" in judged(Trouble.AUTHORITY, shown=own).detail


def test_the_hosts_of_a_certificate_for_others_are_listed() -> None:
    found = judged(Trouble.NAME)
    assert (
        found.detail == "shows a certificate for a.example, b.example, and not for pulsar.internal"
    )
    assert "clusters.main.tls.verify_host: false" in found.remedy


def test_an_expired_certificate_is_told_from_one_behind_it() -> None:
    found = judged(Trouble.EXPIRED, shown=EXPIRED)
    assert found.detail == "shows a certificate that expired 2027-01-14 08:00 UTC"
    assert "behind which an expired one is" in judged(Trouble.EXPIRED).detail


def test_a_wanted_certificate_is_advised_only_if_there_is_none() -> None:
    found = judged(Trouble.WANTED)
    assert "wants a certificate of the gateway, and the gateway has none" in found.detail
    assert "clusters.main.tls.certificate" in found.remedy
    assert "does not accept the gateway's certificate" in judged(Trouble.WANTED, OWN).detail


@pytest.mark.parametrize(
    ("trouble", "detail"),
    [
        (Trouble.TOO_EARLY, "is not valid before 2026-01-15"),
        (Trouble.PURPOSE, "not for servers"),
        (Trouble.NONE, "does not speak TLS there (words)"),
        (Trouble.AMBIGUOUS, "wants a certificate, or has no cipher in common"),
        (Trouble.OLD, "older than 1.2"),
        (Trouble.SILENT, "does not answer the TLS handshake"),
        (Trouble.OTHER, "the TLS handshake fails: words"),
    ],
)
def test_other_troubles_have_words_too(trouble: Trouble, detail: str) -> None:
    assert detail in judged(trouble).detail


@pytest.mark.parametrize("trouble", Trouble)
def test_every_trouble_has_advice_without_the_peers_certificate(trouble: Trouble) -> None:
    assert judged(trouble, shown=None).detail
    assert judged(trouble, OWN, shown=None).detail


# -- success ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "status"), [(90, Status.OK), (20, Status.WARN)])
def test_a_brokers_certificate_that_ends_soon_is_a_warning(days: int, status: Status) -> None:
    shown = Facts("a", "b", ("a.example",), NOW - 365 * DAY, NOW + days * DAY)
    found = judge_agreed("TLS of b", Agreed("TLSv1.3", "CIPHER", shown), NOW)
    assert found.status is status
    assert found.detail.startswith("TLSv1.3, CIPHER; its certificate is for a.example, until")


def test_a_certificate_that_cannot_be_read_is_left_out() -> None:
    found = judge_agreed("TLS of b", Agreed("TLSv1.3", "CIPHER", None), NOW)
    assert (found.status, found.detail) == (Status.OK, "TLSv1.3, CIPHER")
