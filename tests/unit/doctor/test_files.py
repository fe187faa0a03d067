"""Contents and access rights of key and token files; no secret is printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import OctKey

from gateway.config.load import build
from gateway.config.model import Configuration
from gateway.doctor.files import DAY, SOON, examine, read_claims
from gateway.doctor.finding import Finding, Status

NOW = 1_800_000_000.0
SECRET = bytes(range(32))
CURVE = generate_private_key(SECP256R1()).public_key()

Examine = Callable[..., list[Finding]]
Keep = Callable[..., None]

TEMPLATE = {"template": {"advertise": "b-{n}.example", "broker": "p-{n}.internal:6650"}}


def token(**claims: Any) -> bytes:
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET)).encode()


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    def write(name: str, content: bytes, mode: int = 0o600) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(mode)

    return write


@pytest.fixture
def examined(tmp_path: Path) -> Examine:
    """Return the findings of a configuration with these parts."""

    def run(identity: Any = None, **cluster: Any) -> list[Finding]:
        configuration = _configuration(tmp_path, identity, cluster)
        return list(examine(configuration, tmp_path, NOW))

    return run


def _configuration(
    folder: Path, identity: Any, cluster: dict[str, Any], **more: Any
) -> Configuration:
    """`more`: of the listener."""
    listener = {"name": "edge", "bind": "127.0.0.1:0", "cluster": "main", **more}
    data = {
        "version": 1,
        "listeners": [listener | ({"identity": identity} if identity else {})],
        "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1", **cluster}},
    }
    configuration, mistakes = build(data, folder)
    assert configuration is not None, mistakes
    return configuration


def verify(**token: Any) -> dict[str, Any]:
    return {"mode": "verify", "token": token}


def of(findings: list[Finding], check: str) -> Finding:
    (found,) = [it for it in findings if it.check == check]
    return found


# -- keys of tokens --------------------------------------------------------------------------


def test_a_valid_secret_shows_its_size_and_purpose(keep: Keep, examined: Examine) -> None:
    keep("secret.key", SECRET)
    found = of(examined(verify(secret_file="secret.key")), "secret.key")
    assert found.status is Status.OK
    assert found.detail == "a secret of 32 bytes; verifies HS256 for edge"


def test_a_secret_that_others_may_read_is_a_warning(keep: Keep, examined: Examine) -> None:
    keep("secret.key", SECRET, 0o644)
    found = of(examined(verify(secret_file="secret.key")), "secret.key")
    assert found.status is Status.WARN
    assert "everybody on this machine may read it" in found.detail
    assert found.example.startswith("chmod o-rwx ")


def test_a_short_secret_fails_with_the_way_to_make_one(keep: Keep, examined: Examine) -> None:
    keep("secret.key", b"short")
    found = of(examined(verify(secret_file="secret.key")), "secret.key")
    assert found.status is Status.FAIL
    assert found.detail.endswith("holds 5 bytes, at least 32 are needed")
    assert "create-secret-key" in found.remedy


def test_a_key_without_a_matching_algorithm_fails(keep: Keep, examined: Examine) -> None:
    keep("secret.key", SECRET)
    found = of(examined(verify(secret_file="secret.key", algorithms=["HS512"])), "secret.key")
    assert found.status is Status.FAIL
    assert "fits none of the algorithms HS512" in found.detail
    assert found.remedy


def test_a_public_key_may_be_read_but_not_written_by_others(keep: Keep, examined: Examine) -> None:
    pem = CURVE.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    identity = verify(public_key_file="issuer.pem", algorithms=["ES256"])
    keep("issuer.pem", pem, 0o644)
    found = of(examined(identity), "issuer.pem")
    assert found.status is Status.OK
    assert found.detail == "a public key of the curve P-256; verifies ES256 for edge"
    keep("issuer.pem", pem, 0o666)
    found = of(examined(identity), "issuer.pem")
    assert (found.status, found.example[:10]) == (Status.WARN, "chmod o-w ")


# -- sealing keys ----------------------------------------------------------------------------


def test_sealed_names_without_a_key_are_a_warning(examined: Examine) -> None:
    found = of(examined(), "sealing key of main")
    assert found.status is Status.WARN
    assert "head -c 32 /dev/urandom" in found.example


def test_template_names_need_no_key(examined: Examine) -> None:
    assert examined(names=TEMPLATE) == []


def test_brokers_with_ids_have_no_names_and_need_no_key(tmp_path: Path) -> None:
    ports = {"host": "127.0.0.1", "ids": "0", "first_port": 9093}
    listener = {"protocol": "kafka", "advertise": {"ports": ports}}
    cluster = {"brokers": "kafka://127.0.0.1:1"}
    configuration = _configuration(tmp_path, None, cluster, **listener)
    assert list(examine(configuration, tmp_path, NOW)) == []


def test_the_first_sealing_key_seals_and_the_others_open(keep: Keep, examined: Examine) -> None:
    keep("new.key", SECRET)
    keep("old.key", SECRET[::-1])
    findings = examined(names={"sealed": {"keys": [{"file": "new.key"}, {"file": "old.key"}]}})
    assert of(findings, "new.key").detail.endswith("; seals and opens names of main")
    assert of(findings, "old.key").detail.endswith("; opens names of main")


def test_a_guessable_sealing_key_fails(keep: Keep, examined: Examine) -> None:
    keep("seal.key", bytes(32))
    found = of(examined(names={"sealed": {"keys": [{"file": "seal.key"}]}}), "seal.key")
    assert found.status is Status.FAIL
    assert "one byte over and over" in found.detail


# -- passwords -------------------------------------------------------------------------------


EACH = b"alice: {username: a, password: very secret}"


@pytest.mark.parametrize(
    ("own", "content", "detail"),
    [
        (
            {"basic": {"username": "gateway", "password_file": "own"}},
            b"very secret",
            "the password of gateway; shown to brokers of main",
        ),
        (
            {"each_principal": {"passwords_file": "own"}},
            EACH,
            "a name and a password for each client; shown to brokers of main",
        ),
    ],
)
def test_passwords_for_brokers_are_read_and_protected(
    keep: Keep, tmp_path: Path, own: dict[str, Any], content: bytes, detail: str
) -> None:
    def found() -> Finding:
        return of(list(examine(kafka(tmp_path, own), tmp_path, NOW)), "own")

    keep("own", content)
    assert (found().status, found().detail) == (Status.OK, detail)
    keep("own", content, 0o644)
    assert found().status is Status.WARN
    assert "very secret" not in str(found())
    keep("own", b" ")
    assert found().status is Status.FAIL


@pytest.mark.parametrize(
    "method", [{"scram": {"credentials_file": "users"}}, {"basic": {"htpasswd_file": "users"}}]
)
def test_what_verifies_passwords_is_protected(
    keep: Keep, tmp_path: Path, method: dict[str, Any]
) -> None:
    keep("users", b"alice:x", 0o644)
    identity = {"mode": "verify", **method}
    found = of(list(examine(kafka(tmp_path, {}, identity), tmp_path, NOW)), "users")
    assert found.status is Status.WARN
    assert "of edge; everybody on this machine may read it" in found.detail


def kafka(
    folder: Path, credential: dict[str, Any], identity: dict[str, Any] | None = None
) -> Configuration:
    """Return a configuration of Kafka whose brokers are reached by TLS."""
    ports = {"host": "localhost", "ids": "1-2", "first_port": 9093}
    listener: dict[str, Any] = {"name": "edge", "bind": "127.0.0.1:9092", "cluster": "main"}
    listener |= {"protocol": "kafka", "advertise": {"ports": ports}}
    identity = identity or {"mode": "verify", "anonymous": {}}
    cluster: dict[str, Any] = {"brokers": "kafka+ssl://127.0.0.1:1"}
    if credential:
        cluster["credential"] = credential
    data = {
        "version": 1,
        "listeners": [listener | {"identity": identity}],
        "clusters": {"main": cluster},
    }
    configuration, mistakes = build(data, folder)
    assert configuration is not None, mistakes
    return configuration


# -- our own token ---------------------------------------------------------------------------


@pytest.fixture
def credential(keep: Keep, examined: Examine) -> Callable[..., list[Finding]]:
    """Return the findings about a token file with this content, which a listener uses."""

    def run(content: bytes, mode: int = 0o600, *, used: bool = True) -> list[Finding]:
        keep("secret.key", SECRET)
        keep("own.token", content, mode)
        identity = verify(secret_file="secret.key") if used else None
        own = {"token_file": "own.token"}
        findings = examined(identity, names=TEMPLATE, credential=own)
        return [it for it in findings if it.check == "own.token"]

    return run


@pytest.mark.parametrize(
    ("claims", "status", "detail"),
    [
        ({}, Status.OK, 'a token of the role "proxy", without an end'),
        ({"exp": NOW + SOON + DAY}, Status.OK, 'of the role "proxy", until 2027-01-23'),
        ({"exp": NOW + DAY}, Status.WARN, "expires soon: 2027-01-16 08:00 UTC"),
        ({"exp": NOW}, Status.FAIL, "expired since 2027-01-15 08:00 UTC"),
        ({"nbf": NOW + DAY}, Status.FAIL, "not valid before 2027-01-16 08:00 UTC"),
        ({"exp": 1e300}, Status.OK, "without an end"),
        ({"exp": True}, Status.OK, "without an end"),
    ],
)
def test_the_gateways_token_shows_its_role_and_dates(
    credential: Callable[..., list[Finding]], claims: dict[str, Any], status: Status, detail: str
) -> None:
    (found,) = credential(token(sub="proxy", **claims))
    assert found.status is status
    assert detail in found.detail


def test_no_part_of_a_token_is_shown(credential: Callable[..., list[Finding]]) -> None:
    secret = token(sub="proxy", exp=NOW + DAY)
    for content in (secret, secret + b"x", b"plain-secret", secret.replace(b".", b"")):
        told = repr(credential(content, 0o644))
        assert not any(part.decode() in told for part in content.split(b"."))


def test_an_invalid_token_is_a_warning(credential: Callable[..., list[Finding]]) -> None:
    (found,) = credential(b"not-a-token")
    assert found.status is Status.WARN
    assert found.detail == "does not hold a JSON Web Token"


def test_a_token_that_others_may_read_is_a_warning(
    credential: Callable[..., list[Finding]],
) -> None:
    (found,) = credential(token(sub="proxy"), 0o604)
    assert found.status is Status.WARN


def test_a_blank_token_file_fails(credential: Callable[..., list[Finding]]) -> None:
    (found,) = credential(b" \n")
    assert found.status is Status.FAIL
    assert found.detail.endswith("is empty")


def test_an_unused_token_is_a_warning(
    credential: Callable[..., list[Finding]],
) -> None:
    (_, unused) = credential(token(sub="proxy"), used=False)
    assert unused.status is Status.WARN
    assert unused.detail.startswith("is not used")


@pytest.mark.parametrize(
    "content", [b"", b"a.b", b"a.b.c", b"e30.W10.e30", b"e30.\xff.e30", b"." * 9000]
)
def test_an_invalid_token_has_no_claims(content: bytes) -> None:
    assert read_claims(content) is None


def test_a_role_that_is_not_text_is_not_shown() -> None:
    held = read_claims(token(sub=["proxy"], aud="pulsar"))
    assert held is not None
    assert held.role is None
