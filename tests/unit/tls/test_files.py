"""What is read from the files of certificates, keys and revoked certificates."""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from gateway.errors import ConfigurationError
from gateway.tls.files import (
    KeyPair,
    Kind,
    certificates_of,
    common_name_of,
    expiries_of,
    load_authorities,
    load_pair,
    load_revocations,
    names_of,
)
from tests.support.certificates import DAY, CertificateAuthority, Wanted
from tests.unit.tls.samples import House


def names(wanted: Wanted) -> tuple[str, ...]:
    """Return the names that are read from a certificate."""
    with TemporaryDirectory() as folder:
        return names_of(CertificateAuthority().issue(wanted).written(Path(folder)).certificate)


# -- names -----------------------------------------------------------------------------------


def test_a_certificate_is_for_its_alternative_names() -> None:
    wanted = Wanted(["a.example", "*.b.example"], common="c.example")
    assert names(wanted) == ("a.example", "*.b.example")


def test_a_certificate_without_alternative_names_is_for_its_common_name() -> None:
    assert names(Wanted(common="Gateway.Example")) == ("gateway.example",)


def test_names_are_in_lower_case() -> None:
    assert names(Wanted(["Gateway.EXAMPLE"])) == ("gateway.example",)


def test_names_are_those_of_the_first_certificate(house: House) -> None:
    pair, other = house.pair("a.example"), house.pair("b.example", file="other")
    pair.certificate.write_bytes(pair.certificate.read_bytes() + other.certificate.read_bytes())
    assert names_of(pair.certificate) == ("a.example",)


def test_addresses_and_uris_are_no_names() -> None:
    wanted = Wanted(["10.0.0.1"], ["spiffe://example/gateway"], common="gateway.example")
    assert names(wanted) == ()


# -- expiries --------------------------------------------------------------------------------


def ends_of(content: bytes) -> float:
    """Return when a certificate ends to be valid."""
    return x509.load_pem_x509_certificate(content).not_valid_after_utc.timestamp()


def test_a_file_expires_with_the_first_of_its_certificates(house: House) -> None:
    chain = [house.authority.issue(Wanted(ends=days * DAY)).certificate for days in (3, 1, 2)]
    shown = house.write("shown", b"".join(chain))
    trusted = house.authorities[0]
    assert list(expiries_of([shown], [trusted], [])) == [
        (Kind.CERTIFICATE, shown, ends_of(chain[1])),
        (Kind.AUTHORITY, trusted, ends_of(house.authority.certificate)),
    ]


def test_a_list_of_revoked_certificates_expires_when_the_next_is_due(house: House) -> None:
    content = house.authority.revoke()
    path = house.write("revoked", content)
    due = x509.load_pem_x509_crl(content).next_update_utc
    assert due is not None
    assert list(expiries_of([], [], [path])) == [(Kind.REVOCATIONS, path, due.timestamp())]


def test_a_list_after_which_none_is_due_never_expires(house: House) -> None:
    content = house.authority.revoke()
    # The library writes no list without the time of the next one, so that time is cut out.
    path = house.write("revoked", without_next_update(content))
    (expiry,) = expiries_of([], [], [path])
    assert expiry == (Kind.REVOCATIONS, path, math.inf)


def without_next_update(content: bytes) -> bytes:
    """Return a list of revoked certificates without `nextUpdate` (RFC 5280 section 5.1.2.5), and
    with a wrong signature."""
    der = x509.load_pem_x509_crl(content).public_bytes(Encoding.DER)
    outer, inner = header(der, 0), header(der, header(der, 0)[0])
    body = der[inner[0] : inner[0] + inner[1]]
    time = b"\x17\x0d"  # UTCTime of 13 bytes: thisUpdate, and nextUpdate behind it
    second = body.index(time, body.index(time) + 15)
    body = body[:second] + body[second + 15 :]
    rest = der[inner[0] + inner[1] : outer[0] + outer[1]]
    return pem(sequence(sequence(body) + rest))


def header(der: bytes, start: int) -> tuple[int, int]:
    """Return where the content of a DER element begins, and its size."""
    first = der[start + 1]
    if first < 0x80:
        return start + 2, first
    behind = start + 2 + (first & 0x7F)
    return behind, int.from_bytes(der[start + 2 : behind], "big")


def sequence(content: bytes) -> bytes:
    """Return a DER sequence."""
    size = len(content)
    many = bytes([size]) if size < 0x80 else size.to_bytes(1 + size // 256, "big")
    return b"\x30" + (many if size < 0x80 else bytes([0x80 + len(many)]) + many) + content


def pem(der: bytes) -> bytes:
    """Return a list of revoked certificates in PEM form."""
    armoured = ssl.DER_cert_to_PEM_cert(der)
    return armoured.replace("CERTIFICATE", "X509 CRL").encode()


# -- errors ----------------------------------------------------------------------------------

Loads = Callable[[Path], object]


def _server() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


READERS: dict[str, Loads] = {
    "certificates": certificates_of,
    "pair": lambda path: load_pair(_server(), KeyPair(path, path)),
    "authorities": lambda path: load_authorities(_server(), path),
    "revocations": lambda path: load_revocations(_server(), path),
    "expiries": lambda path: list(expiries_of([], [], [path])),
}

each_reader = pytest.mark.parametrize("load", READERS.values(), ids=READERS)


@each_reader
def test_a_missing_file_is_an_error_that_names_it(load: Loads, tmp_path: Path) -> None:
    path = tmp_path / "missing"
    with pytest.raises(ConfigurationError, match=rf"{path} cannot be read: No such file"):
        load(path)


@each_reader
def test_a_folder_is_an_error_that_names_it(load: Loads, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"{tmp_path} cannot be read: Is a directory"):
        load(tmp_path)


@each_reader
def test_a_large_file_is_an_error_that_names_it(load: Loads, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(ConfigurationError, match=rf"{path} is larger than"):
        load(path)


@each_reader
@pytest.mark.parametrize("left", [0, 100, -40])
def test_a_short_file_is_an_error_that_names_it(load: Loads, left: int, house: House) -> None:
    content = house.authority.certificate
    path = house.write("short", content[:left])
    with pytest.raises(ConfigurationError, match=str(path)):
        load(path)


@pytest.mark.parametrize("left", [100, -40])
def test_a_short_key_is_an_error_that_names_it(left: int, house: House) -> None:
    pair = house.pair()
    pair.key.write_bytes(pair.key.read_bytes()[:left])
    with pytest.raises(ConfigurationError, match=str(pair.key)):
        load_pair(_server(), pair)


def test_a_chain_that_is_cut_off_is_an_error(house: House) -> None:
    pair = house.pair()
    chain = pair.certificate.read_bytes() + house.authority.certificate
    pair.certificate.write_bytes(chain[:-40])
    with pytest.raises(ConfigurationError, match=str(pair.certificate)):
        load_pair(_server(), pair)


# -- certificates that one library understands and the other does not -----------------------------


def test_a_certificate_of_an_unknown_version_is_an_error(house: House) -> None:
    der = ssl.PEM_cert_to_DER_cert(house.authority.certificate.decode())
    changed = der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07", 1)
    path = house.write("version", ssl.DER_cert_to_PEM_cert(changed).encode())
    with pytest.raises(ConfigurationError, match=str(path)):
        certificates_of(path)


def test_names_that_are_no_names_are_an_error(house: House) -> None:
    pair = house.pair("gateway.example", common="test")
    der = ssl.PEM_cert_to_DER_cert(pair.certificate.read_text())
    changed = der.replace(b"gateway.example", b"\xffateway.example")
    pair.certificate.write_text(ssl.DER_cert_to_PEM_cert(changed))
    load_pair(_server(), pair)  # OpenSSL has nothing against it
    with pytest.raises(ConfigurationError, match=str(pair.certificate)):
        names_of(pair.certificate)


def common_name(wanted: Wanted) -> str | None:
    """Return the common name that is read from a certificate."""
    certificate = CertificateAuthority().issue(wanted).certificate
    return common_name_of(ssl.PEM_cert_to_DER_cert(certificate.decode()))


def test_the_common_name_of_a_certificate_is_read_as_it_is() -> None:
    assert common_name(Wanted(["a.example"], common="Client 1")) == "Client 1"


def test_a_certificate_may_have_no_common_name() -> None:
    assert common_name(Wanted(["a.example"], common="")) is None


def test_what_is_no_certificate_has_no_common_name() -> None:
    assert common_name_of(b"no certificate") is None


# -- what is loaded --------------------------------------------------------------------------


def test_authorities_are_trusted(house: House) -> None:
    context = _server()
    load_authorities(context, house.authorities[0])
    assert context.cert_store_stats()["x509_ca"] == 1
    assert not context.verify_flags & ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def test_revoked_certificates_are_looked_up(house: House) -> None:
    context = _server()
    load_revocations(context, house.write("revoked", house.authority.revoke()))
    assert context.cert_store_stats()["crl"] == 1
    assert context.verify_flags & ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def test_a_list_with_nothing_revoked_is_a_list(house: House) -> None:
    now = datetime.now(UTC)
    builder = x509.CertificateRevocationListBuilder(
        house.authority._subject, now, now + timedelta(days=1)
    )
    signed = builder.sign(house.authority.key, SHA256())
    load_revocations(_server(), house.write("empty", signed.public_bytes(Encoding.PEM)))
