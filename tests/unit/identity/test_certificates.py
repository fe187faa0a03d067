"""The name that a client's certificate gives it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtensionOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import model
from gateway.identity.certificates import (
    NAMES,
    NO_CERTIFICATE,
    NO_NAME,
    CertificateVerifier,
    make_verifier,
)
from gateway.identity.verified import Verified

KEY = ec.generate_private_key(ec.SECP256R1())
ENDS = datetime(2040, 1, 1, tzinfo=UTC)
NOW = 1_800_000_000.0

DNS, EMAIL = x509.DNSName, x509.RFC822Name
URI = x509.UniformResourceIdentifier
SPIFFE = "spiffe://a.example/ns/x/sa/y"


def certificate(
    *alternatives: x509.GeneralName, common: Sequence[str] = (), extension: bytes | None = None
) -> bytes:
    """Return a certificate. `common`: its common names. `extension`: its alternative names, as
    bytes that need not be right."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common])
    builder = (
        x509.CertificateBuilder(subject, subject, KEY.public_key(), 1)
        .not_valid_before(ENDS - timedelta(days=1))
        .not_valid_after(ENDS)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    if extension is not None:
        oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
        odd = x509.UnrecognizedExtension(oid, extension)
        builder = builder.add_extension(odd, critical=False)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


ALL = certificate(
    *(DNS("one.example"), DNS("two.example"), URI("urn:x"), URI(SPIFFE), EMAIL("a@a.example")),
    common=["general", "specific"],
)


def name(shown: bytes, *kinds: str) -> str | None:
    """Return the name by the first of these kinds; None if there is none."""
    answer = CertificateVerifier(kinds).verify(b"", NOW, shown)
    if isinstance(answer, Verified):
        return answer.name
    assert answer is NO_NAME
    return None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("spiffe", SPIFFE),
        ("uri", "urn:x"),
        ("dns", "one.example"),
        ("email", "a@a.example"),
        ("common_name", "specific"),
        ("subject", "CN=specific,CN=general"),
    ],
)
def test_each_kind_of_name(kind: str, expected: str) -> None:
    assert name(ALL, kind) == expected


@pytest.mark.parametrize("kind", NAMES)
def test_a_certificate_without_a_name_of_the_kind_is_refused(kind: str) -> None:
    assert name(certificate(), kind) is None


@pytest.mark.parametrize("kind", ["spiffe", "uri", "dns", "email"])
def test_a_common_name_is_no_other_name(kind: str) -> None:
    assert name(certificate(common=["one.example"]), kind) is None


def test_the_first_kind_that_the_certificate_has_counts() -> None:
    assert name(ALL, "common_name", "spiffe") == "specific"
    assert name(ALL, "spiffe", "common_name") == SPIFFE
    assert name(certificate(common=["alice"]), "spiffe", "dns", "common_name") == "alice"


def test_the_spiffe_id_comes_first_unless_configured() -> None:
    verifier = make_verifier(model.Certificates(), None)
    assert verifier.verify(b"", NOW, ALL) == Verified(SPIFFE, ENDS.timestamp())
    common = certificate(DNS("a.example"), common=["alice"])
    assert verifier.verify(b"", NOW, common) == Verified("alice", ENDS.timestamp())
    assert verifier.verify(b"", NOW, certificate(DNS("a.example"))) is NO_NAME


def test_two_spiffe_ids_are_none() -> None:
    two = certificate(URI(SPIFFE), URI("spiffe://b.example/z"), common=["alice"])
    assert name(two, "spiffe") is None
    assert name(two, "spiffe", "common_name") == "alice"


@pytest.mark.parametrize("uri", ["https://a/spiffe://b", "SPIFFE:a", "urn:spiffe://a"])
def test_another_uri_is_no_spiffe_id(uri: str) -> None:
    assert name(certificate(URI(uri)), "spiffe") is None


def test_the_name_is_valid_as_long_as_the_certificate() -> None:
    answer = CertificateVerifier(["dns"]).verify(b"", NOW, ALL)
    assert answer == Verified("one.example", ENDS.timestamp())


@pytest.mark.parametrize("data", [b"", b"alice", b"\xff" * 1000])
def test_the_data_of_the_method_say_nothing(data: bytes) -> None:
    verifier = CertificateVerifier(["common_name"])
    assert verifier.verify(data, NOW, None) is NO_CERTIFICATE
    assert verifier.verify(data, NOW, ALL) == Verified("specific", ENDS.timestamp())


@pytest.mark.parametrize("bad", ["alice\n", "a\0b", "a\x1b[2J", "\x7f"])
def test_a_name_with_control_characters_is_refused(bad: str) -> None:
    """Another name of the certificate does not take its place."""
    shown = certificate(DNS("one.example"), common=[bad])
    assert name(shown, "common_name") is None
    assert name(shown, "common_name", "dns") is None


@pytest.mark.parametrize("common", ["田中", "a b", "x" * 64, "alice,CN=admin"])
def test_other_common_names_are_taken_as_they_are(common: str) -> None:
    assert name(certificate(common=[common]), "common_name") == common


def test_a_comma_in_a_name_does_not_end_it_in_the_subject() -> None:
    assert name(certificate(common=["alice,CN=admin"]), "subject") == r"CN=alice\,CN=admin"


# -- what this library cannot read --


@pytest.mark.parametrize("kind", ["spiffe", "uri", "dns", "email"])
@pytest.mark.parametrize(
    "extension",
    [
        b"",
        b"\xff",
        b"\x30\x05\x82\x03",
        b"\x30\x05\x82\x03\xff\xfe\xfd",  # a DNS name that is not ASCII
        b"\x30\x05\x86\x03\xff\xfe\xfd",
        b"\x30\x02\xa3\x00",  # an X.400 address
    ],
)
def test_alternative_names_that_cannot_be_read_are_none(kind: str, extension: bytes) -> None:
    shown = certificate(common=["alice"], extension=extension)
    assert name(shown, kind, "common_name") is None
    assert name(shown, "common_name") == "alice"


@given(st.binary(max_size=40) | st.tuples(st.integers(0, 400), st.binary(max_size=3)))
def test_no_certificate_makes_it_raise(change: bytes | tuple[int, bytes]) -> None:
    if isinstance(change, tuple):
        at, other = change
        change = ALL[:at] + other + ALL[at + len(other) :]
    answer = CertificateVerifier(list(NAMES)).verify(b"", NOW, change)
    assert isinstance(answer, Verified) or answer is NO_NAME
