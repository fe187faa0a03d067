"""Tokens of several issuers: each is verified by the keys and rules of its own."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import trio
from joserfc import jws
from joserfc.jwk import OKPKey, RSAKey
from trio.testing import MockClock

from gateway.config import model
from gateway.identity.token import EXPIRED, NO_KEYS, NOT_ACCEPTED, Issuers, Unsettled
from gateway.identity.verified import Verified
from gateway.telemetry.figures import IssuerFigures
from gateway.verifiers import Needs
from gateway.verifiers.tokens import make_verifier
from gateway.wire.contract import Denial
from tests.support.issuer import Issuer, SigningKey, encoded, published

NOW = 1_800_000_000.0
A, B, OTHER = SigningKey("a"), SigningKey("b"), SigningKey("other")
RSA = SigningKey("rsa", RSAKey.generate_key(2048), "RS256")
ED = SigningKey("ed", OKPKey.generate_key("Ed25519"), "EdDSA")
ALICE = Verified("alice", None)


class Setting:
    """Verifies tokens as configured. Key sets are written to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.logged: list[str] = []
        self.needs = Needs(lambda event, **_: self.logged.append(event))

    def file(self, name: str, *keys: SigningKey) -> Path:
        path = self._folder / f"{name}.json"
        path.write_bytes(published(*keys))
        return path

    def issuer(self, name: str | None, *keys: SigningKey, **settings: Any) -> dict[str, Any]:
        """Return the settings of an issuer with a key set."""
        named = {} if name is None else {"issuer": name}
        path = str(self.file(name or "unnamed", *keys))
        return {"jwks_file": path, "algorithms": ["ES256"]} | named | settings

    def verifier(self, *issuers: dict[str, Any], **own: Any) -> Issuers:
        located = {"locate": Path}
        settings = {"issuers": issuers, **own}
        return make_verifier(model.Token.model_validate(settings, context=located), self.needs)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def verify(verifier: Issuers, token: str) -> Verified | Denial | Unsettled:
    return verifier.verify(token.encode(), NOW)


async def settled(verifier: Issuers, token: str) -> Verified | Denial:
    answer = verify(verifier, token)
    return await answer.outcome() if isinstance(answer, Unsettled) else answer


def is_refused(verifier: Issuers, token: str) -> bool:
    """Return true if no token is accepted. A key that is not known yet may be fetched first."""
    return isinstance(verify(verifier, token), Denial | Unsettled)


@pytest.fixture
def two(setting: Setting) -> Issuers:
    """Verifies tokens of the issuers `a` and `b`."""
    return setting.verifier(setting.issuer("a", A), setting.issuer("b", B))


# -- who may issue what --


def test_each_issuer_is_verified_by_its_own_keys(two: Issuers) -> None:
    assert verify(two, A.token(iss="a")) == ALICE
    assert verify(two, B.token(iss="b")) == ALICE


@pytest.mark.parametrize("header", [{}, {"kid": "a"}])
def test_an_issuer_cannot_sign_for_another(two: Issuers, header: dict[str, object]) -> None:
    assert is_refused(two, B.token(iss="a", header=header))
    assert is_refused(two, OTHER.token(iss="a", header=header))
    assert verify(two, SigningKey(None, B.key).token(iss="a")) == NOT_ACCEPTED


async def test_the_id_of_another_issuers_key_is_an_unknown_one(
    two: Issuers, setting: Setting, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    for task in setting.needs.tasks:
        nursery.start_soon(task)
    assert await settled(two, B.token(iss="a")) == NOT_ACCEPTED
    assert await settled(two, A.token(iss="a", header={"kid": "b"})) == NOT_ACCEPTED


@pytest.mark.parametrize("iss", [None, "", "c", "A", "a ", ["a"], {"a": 1}, 1, True])
def test_a_token_of_no_known_issuer_is_not_accepted(two: Issuers, iss: object) -> None:
    assert verify(two, A.token(iss=iss)) == NOT_ACCEPTED


def test_a_token_without_issuer_is_not_accepted(two: Issuers) -> None:
    assert verify(two, A.token()) == NOT_ACCEPTED


def test_an_only_issuer_is_checked_too(setting: Setting) -> None:
    only = setting.verifier(setting.issuer("a", A))
    assert verify(only, A.token(iss="a")) == ALICE
    assert verify(only, A.token(iss="b")) == NOT_ACCEPTED
    assert verify(only, A.token()) == NOT_ACCEPTED


def test_one_issuer_may_have_no_name(setting: Setting) -> None:
    unnamed = str(setting.file("unnamed", OTHER))
    own = {"jwks_file": unnamed, "algorithms": ["ES256"]}
    verifier = setting.verifier(setting.issuer("a", A), **own)
    assert verify(verifier, OTHER.token()) == ALICE
    assert verify(verifier, OTHER.token(iss="c")) == ALICE
    assert verify(verifier, A.token(iss="a")) == ALICE
    assert is_refused(verifier, OTHER.token(iss="a"))
    assert is_refused(verifier, A.token())


def test_the_last_of_two_claims_names_the_issuer(two: Issuers) -> None:
    """JSON allows a name twice; what chooses the keys must read it as what checks it does."""
    for claims, accepted in (
        ('{"sub":"alice","iss":"b","iss":"a"}', True),
        ('{"sub":"alice","iss":"a","iss":"b"}', False),
    ):
        signed = f"{encoded(json.dumps({'alg': 'ES256', 'kid': 'a'}))}.{encoded(claims)}"
        signature = jws.JWSRegistry.algorithms["ES256"].sign(signed.encode(), A.key)
        token = f"{signed}.{encoded(signature)}"
        assert (verify(two, token) == ALICE) is accepted


# -- algorithms --


def test_unsigned_tokens_are_not_accepted(two: Issuers) -> None:
    for name in ("none", "None", "NONE", ""):
        for signature in ("", "AAAA", A.token(iss="a").rpartition(".")[2]):
            header, claims = encoded(json.dumps({"alg": name})), '{"sub":"alice","iss":"a"}'
            assert verify(two, f"{header}.{encoded(claims)}.{signature}") == NOT_ACCEPTED


@pytest.mark.parametrize("form", ["PEM", "DER", "JSON"])
@pytest.mark.parametrize("id", [{}, {"kid": "rsa"}])
def test_a_public_key_is_no_secret(setting: Setting, form: str, id: dict[str, str]) -> None:
    verifier = setting.verifier(
        setting.issuer("a", RSA, algorithms=["RS256"]), setting.issuer("b", B)
    )
    assert isinstance(RSA.key, RSAKey)
    public = RSAKey.import_key(RSA.published)
    secrets = {
        "PEM": public.as_pem(private=False),
        "DER": public.as_der(private=False),
        "JSON": json.dumps(RSA.published).encode(),
    }
    header = encoded(json.dumps({"alg": "HS256"} | id))
    signed = f"{header}.{encoded(json.dumps({'sub': 'alice', 'iss': 'a'}))}"
    signature = hmac.digest(secrets[form], signed.encode(), hashlib.sha256)
    assert verify(verifier, f"{signed}.{encoded(signature)}") == NOT_ACCEPTED


def test_the_algorithms_of_one_issuer_are_not_accepted_for_another(setting: Setting) -> None:
    keys = A, RSA, ED
    verifier = setting.verifier(
        setting.issuer("a", *keys, algorithms=["ES256", "EdDSA"]),
        setting.issuer("b", *keys, algorithms=["RS256"]),
    )
    assert verify(verifier, A.token(iss="a")) == ALICE
    assert verify(verifier, ED.token(iss="a")) == ALICE
    assert verify(verifier, RSA.token(iss="b")) == ALICE
    assert verify(verifier, RSA.token(iss="a")) == NOT_ACCEPTED
    assert verify(verifier, A.token(iss="b")) == NOT_ACCEPTED
    assert verify(verifier, ED.token(iss="b")) == NOT_ACCEPTED


def test_a_key_is_not_used_for_the_algorithm_of_another_kind(setting: Setting) -> None:
    both = ["ES256", "RS256"]
    verifier = setting.verifier(setting.issuer("a", A, RSA, algorithms=both))
    assert verify(verifier, A.token(iss="a", header={"alg": "RS256"})) == NOT_ACCEPTED
    assert verify(verifier, A.token(iss="a", header={"kid": "rsa"})) == NOT_ACCEPTED


def test_a_secret_and_a_key_set_are_issuers_of_different_names(
    setting: Setting, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(32)))
    shared = {"secret_file": str(secret), "issuer": "b", "algorithms": ["HS256"]}
    verifier = setting.verifier(setting.issuer("a", A), shared)

    def token(iss: str) -> str:
        header, claims = json.dumps({"alg": "HS256"}), json.dumps({"sub": "alice", "iss": iss})
        signed = f"{encoded(header)}.{encoded(claims)}"
        return f"{signed}.{encoded(hmac.digest(bytes(range(32)), signed.encode(), hashlib.sha256))}"

    assert verify(verifier, token("b")) == ALICE
    assert verify(verifier, token("a")) == NOT_ACCEPTED


# -- other rules of an issuer --


def test_the_clock_skew_is_the_issuers(setting: Setting) -> None:
    verifier = setting.verifier(
        setting.issuer("a", A, clock_skew="60s"), setting.issuer("b", B, clock_skew="0s")
    )
    assert verify(verifier, A.token(iss="a", exp=NOW - 30)) == Verified("alice", NOW + 30)
    assert verify(verifier, B.token(iss="b", exp=NOW - 30)) == EXPIRED
    assert verify(verifier, A.token(iss="a", nbf=NOW + 30)) == ALICE
    assert verify(verifier, B.token(iss="b", nbf=NOW + 30)) == NOT_ACCEPTED


def test_the_audience_and_the_claim_are_the_issuers(setting: Setting) -> None:
    verifier = setting.verifier(
        setting.issuer("a", A, audience="us"), setting.issuer("b", B, principal_claim="role")
    )
    assert verify(verifier, A.token(iss="a", aud="us")) == ALICE
    assert verify(verifier, A.token(iss="a")) == NOT_ACCEPTED
    assert verify(verifier, B.token(iss="b", role="r")) == Verified("r", None)
    assert verify(verifier, B.token(iss="b", aud="us")) == NOT_ACCEPTED


def test_a_critical_field_is_not_ignored(two: Issuers) -> None:
    critical = {"crit": ["mine"], "mine": 1}
    assert verify(two, A.token(iss="a", header=critical)) == NOT_ACCEPTED
    assert verify(two, A.token(iss="a", header={"crit": ["b64"], "b64": False})) == NOT_ACCEPTED


@pytest.mark.parametrize("field", ["jwk", "jku", "x5c", "x5u"])
def test_keys_that_a_token_brings_along_are_not_used(two: Issuers, field: str) -> None:
    brought: dict[str, object] = {
        "jwk": OTHER.published,
        "jku": "https://keys.example",
        "x5c": [b64encode(b"certificate").decode()],
        "x5u": "https://keys.example",
    }
    token = OTHER.token(iss="a", header={"kid": "a", field: brought[field]})
    assert verify(two, token) == NOT_ACCEPTED


@pytest.mark.parametrize("token", ["", ".", "..", "a.b", "a.b.c.d", "é.é.é", "e30.e30.", "." * 99])
def test_what_is_no_token_is_not_accepted(two: Issuers, token: str) -> None:
    assert verify(two, token) == NOT_ACCEPTED


def test_deep_or_large_claims_are_not_accepted(two: Issuers) -> None:
    for claims in ("[" * 8000, '{"iss":' * 1500, "1" * 10_000, "x" * 20_000):
        assert verify(two, f"e30.{encoded(claims)}.AAAA") == NOT_ACCEPTED


# -- keys that change --


async def test_a_key_set_in_a_file_is_read_again(setting: Setting, nursery: trio.Nursery) -> None:
    verifier = setting.verifier(setting.issuer("a", A))
    for task in setting.needs.tasks:
        nursery.start_soon(task)
    setting.file("a", A, OTHER)
    assert await settled(verifier, OTHER.token(iss="a")) == ALICE
    assert verify(verifier, A.token(iss="a")) == ALICE


async def test_a_file_that_becomes_wrong_keeps_its_keys(
    setting: Setting, nursery: trio.Nursery
) -> None:
    verifier = setting.verifier(setting.issuer("a", A))
    setting.file("a", A).write_bytes(b" " * 70_000)
    for task in setting.needs.tasks:
        nursery.start_soon(task)
    assert await settled(verifier, OTHER.token(iss="a")) is NO_KEYS
    assert verify(verifier, A.token(iss="a")) == ALICE
    assert setting.logged == ["issuer_keys_unavailable"]


async def test_an_encoded_key_set_stays_readable(setting: Setting, nursery: trio.Nursery) -> None:
    path = setting.file("a", A)
    path.write_bytes(b"data:;base64," + b64encode(published(A)))
    own = {"jwks_file": str(path), "algorithms": ["ES256"], "issuer": "a"}
    verifier = setting.verifier(**own)
    for task in setting.needs.tasks:
        nursery.start_soon(task)
    assert await settled(verifier, OTHER.token(iss="a")) == NOT_ACCEPTED
    assert setting.needs.issuers[str(path)] == IssuerFigures(keys=1, fetched=1)
    assert verify(verifier, A.token(iss="a")) == ALICE


@pytest.mark.parametrize("discovers", [False, True])
async def test_keys_come_from_the_issuers_server(
    setting: Setting, nursery: trio.Nursery, discovers: bool
) -> None:
    server = Issuer(A)
    await nursery.start(server.serve)
    where = {"discovery": True} if discovers else {"jwks_url": server.keys_url}
    fetched = {"issuer": server.url, "algorithms": ["ES256"], **where}
    verifier = setting.verifier(fetched, setting.issuer("b", B))
    (mine, _), _ = setting.needs.issuers.items()
    assert mine == (server.url if discovers else server.keys_url)
    for task in setting.needs.tasks:
        nursery.start_soon(task)
    assert await settled(verifier, A.token(iss=server.url)) == ALICE
    assert verify(verifier, B.token(iss="b")) == ALICE
    assert setting.needs.issuers[mine] == IssuerFigures(keys=1, fetched=1)


async def test_without_keys_a_client_is_told_to_come_again(
    setting: Setting, nursery: trio.Nursery
) -> None:
    server = Issuer(A)
    server.is_down = True
    await nursery.start(server.serve)
    fetched = {"issuer": "a", "jwks_url": server.keys_url, "algorithms": ["ES256"]}
    verifier = setting.verifier(fetched)
    for task in setting.needs.tasks:
        nursery.start_soon(task)
    assert await settled(verifier, A.token(iss="a")) is NO_KEYS
