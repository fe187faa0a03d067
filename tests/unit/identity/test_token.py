from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.config.model import PUBLIC_KEY_ALGORITHMS
from gateway.errors import ConfigurationError
from gateway.identity.keys import TokenKey
from gateway.identity.names import LONGEST_NAME
from gateway.identity.token import (
    EXPIRED,
    LARGEST_TOKEN,
    LONGEST_CAUSE,
    NOT_ACCEPTED,
    TokenVerifier,
)
from gateway.identity.verified import Verified
from gateway.wire.contract import Denial

NOW = 1_800_000_000.0
SECRET = OctKey.import_key(bytes(range(64)))
OTHER_SECRET = OctKey.import_key(bytes(range(1, 65)))
RSA = RSAKey.generate_key(2048)
EC = {
    "ES256": ECKey.generate_key("P-256"),
    "ES384": ECKey.generate_key("P-384"),
    "ES512": ECKey.generate_key("P-521"),
}
ED25519 = OKPKey.generate_key("Ed25519")
KEYS: dict[str, TokenKey] = {**EC, "EdDSA": ED25519, "Ed25519": ED25519}


def public(key: TokenKey) -> TokenKey:
    assert not isinstance(key, OctKey)
    return type(key).import_key(key.as_dict(private=False))


def signed(
    claims: object, key: TokenKey = SECRET, algorithm: str = "HS256", **header: object
) -> bytes:
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    return jws.serialize_compact(
        {"alg": algorithm, **header}, payload, key, registry=registry
    ).encode()


def encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def handmade(header: bytes, payload: bytes, key: bytes = bytes(range(64))) -> bytes:
    """Return a token that is signed with HS256, whatever its header says."""
    text = encode(header) + b"." + encode(payload)
    return text + b"." + encode(hmac.digest(key, text, hashlib.sha256))


VERIFIER = TokenVerifier([SECRET], ["HS256"])


# -- signatures --


def test_a_signed_token_names_its_subject() -> None:
    assert VERIFIER.verify(signed({"sub": "alice"}), NOW) == Verified("alice", None)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_shared_secrets_verify(algorithm: str) -> None:
    token = signed({"sub": "alice"}, SECRET, algorithm)
    assert isinstance(TokenVerifier([SECRET], [algorithm]).verify(token, NOW), Verified)


@pytest.mark.parametrize("algorithm", PUBLIC_KEY_ALGORITHMS)
def test_public_keys_verify(algorithm: str) -> None:
    key = KEYS.get(algorithm, RSA)
    token = signed({"sub": "alice"}, key, algorithm)
    assert isinstance(TokenVerifier([public(key)], [algorithm]).verify(token, NOW), Verified)


def test_the_two_names_of_one_signature_are_two_algorithms() -> None:
    verifier = TokenVerifier([public(ED25519)], ["EdDSA"])
    assert isinstance(verifier.verify(signed({"sub": "a"}, ED25519, "EdDSA"), NOW), Verified)
    assert verifier.verify(signed({"sub": "a"}, ED25519, "Ed25519"), NOW) == NOT_ACCEPTED


def test_any_of_several_keys_verifies() -> None:
    verifier = TokenVerifier([OTHER_SECRET, SECRET], ["HS256"])
    assert isinstance(verifier.verify(signed({"sub": "alice"}), NOW), Verified)


def test_keys_of_several_kinds_verify_together() -> None:
    verifier = TokenVerifier([public(RSA), public(EC["ES256"])], ["RS256", "ES256"])
    assert isinstance(verifier.verify(signed({"sub": "a"}, EC["ES256"], "ES256"), NOW), Verified)
    assert isinstance(verifier.verify(signed({"sub": "a"}, RSA, "RS256"), NOW), Verified)


def test_another_key_is_not_accepted() -> None:
    assert VERIFIER.verify(signed({"sub": "alice"}, OTHER_SECRET), NOW) == NOT_ACCEPTED


def test_another_algorithm_than_the_configured_is_not_accepted() -> None:
    assert VERIFIER.verify(signed({"sub": "a"}, SECRET, "HS512"), NOW) == NOT_ACCEPTED
    verifier = TokenVerifier([public(RSA)], ["RS256"])
    assert verifier.verify(signed({"sub": "a"}, RSA, "PS256"), NOW) == NOT_ACCEPTED


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", ""])
def test_an_unsigned_token_is_not_accepted(name: str) -> None:
    header = encode(json.dumps({"alg": name}).encode())
    for signature in (b"", b"AAAA"):
        token = header + b"." + encode(b'{"sub":"alice"}') + b"." + signature
        assert VERIFIER.verify(token, NOW) == NOT_ACCEPTED
        assert TokenVerifier([public(RSA)], ["RS256"]).verify(token, NOW) == NOT_ACCEPTED


@pytest.mark.parametrize("form", ["PEM", "DER"])
def test_a_public_key_is_not_accepted_as_a_secret(form: Literal["PEM", "DER"]) -> None:
    key = public(RSA)
    assert isinstance(key, RSAKey)
    token = handmade(b'{"alg":"HS256"}', b'{"sub":"alice"}', key.as_bytes(form))
    assert TokenVerifier([key], ["RS256"]).verify(token, NOW) == NOT_ACCEPTED


def test_no_changed_byte_is_accepted() -> None:
    token = signed({"sub": "alice"})
    for at in range(len(token)):
        for other in (b"A", b"B", b".", b"=", b" ", b"\xff", b""):
            changed = token[:at] + other + token[at + 1 :]
            if changed != token:
                assert VERIFIER.verify(changed, NOW) == NOT_ACCEPTED


def test_unknown_header_fields_are_ignored_unless_critical() -> None:
    assert isinstance(VERIFIER.verify(signed({"sub": "a"}, kid="k", tenant="t"), NOW), Verified)
    header = b'{"alg":"HS256","crit":["mine"],"mine":1}'
    assert VERIFIER.verify(handmade(header, b'{"sub":"a"}'), NOW) == NOT_ACCEPTED


# -- claims --


@pytest.mark.parametrize(
    ("subject", "name"),
    [("alice", "alice"), (["alice", "bob"], "alice"), (["alice", 1], "alice"), ("é", "é")],
)
def test_the_subject_is_a_string_or_the_first_of_a_list(subject: object, name: str) -> None:
    assert VERIFIER.verify(signed({"sub": subject}), NOW) == Verified(name, None)


@pytest.mark.parametrize(
    "subject", ["", None, 1, True, [], [""], [1, "alice"], [["alice"]], {"name": "alice"}]
)
def test_a_subject_of_another_kind_is_not_accepted(subject: object) -> None:
    assert VERIFIER.verify(signed({"sub": subject}), NOW) == NOT_ACCEPTED


def test_a_missing_subject_is_not_accepted() -> None:
    assert VERIFIER.verify(signed({"name": "alice"}), NOW) == NOT_ACCEPTED


def test_another_claim_can_name_the_principal() -> None:
    verifier = TokenVerifier([SECRET], ["HS256"], principal_claim="role")
    assert verifier.verify(signed({"sub": "alice", "role": ["r1"]}), NOW) == Verified("r1", None)
    assert verifier.verify(signed({"sub": "alice"}), NOW) == NOT_ACCEPTED


@pytest.mark.parametrize(
    ("audience", "accepted"),
    [
        ("us", True),
        (["them", "us"], True),
        ("them", False),
        ([], False),
        (None, False),
        ("u", False),
    ],
)
def test_the_audience_must_match_if_one_is_configured(audience: object, accepted: bool) -> None:
    verifier = TokenVerifier([SECRET], ["HS256"], audience="us")
    answer = verifier.verify(signed({"sub": "alice", "aud": audience}), NOW)
    assert isinstance(answer, Verified) == accepted
    assert isinstance(VERIFIER.verify(signed({"sub": "alice", "aud": audience}), NOW), Verified)


def test_the_issuer_must_match_if_one_is_configured() -> None:
    verifier = TokenVerifier([SECRET], ["HS256"], issuer="us")
    assert isinstance(verifier.verify(signed({"sub": "a", "iss": "us"}), NOW), Verified)
    assert verifier.verify(signed({"sub": "a", "iss": "them"}), NOW) == NOT_ACCEPTED
    assert verifier.verify(signed({"sub": "a"}), NOW) == NOT_ACCEPTED


# -- dates --


def test_a_token_is_accepted_until_it_expires() -> None:
    token = signed({"sub": "alice", "exp": NOW})
    assert VERIFIER.verify(token, NOW - 0.001) == Verified("alice", NOW)
    assert VERIFIER.verify(token, NOW) == EXPIRED


def test_a_token_is_accepted_from_its_beginning() -> None:
    token = signed({"sub": "alice", "nbf": NOW})
    assert VERIFIER.verify(token, NOW - 0.001) == NOT_ACCEPTED
    assert VERIFIER.verify(token, NOW) == Verified("alice", None)


def test_the_clock_skew_is_granted_at_both_ends() -> None:
    verifier = TokenVerifier([SECRET], ["HS256"], clock_skew=60.0)
    token = signed({"sub": "alice", "nbf": NOW, "exp": NOW + 100})
    assert verifier.verify(token, NOW - 60.1) == NOT_ACCEPTED
    assert verifier.verify(token, NOW - 60) == Verified("alice", NOW + 160)
    assert isinstance(verifier.verify(token, NOW + 159.9), Verified)
    assert verifier.verify(token, NOW + 160) == EXPIRED


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize(
    "value", ["1900000000", True, [], {}, math.nan, math.inf, -math.inf, 10**400, "", False]
)
def test_a_date_that_is_no_number_is_not_accepted(claim: str, value: object) -> None:
    assert VERIFIER.verify(signed({"sub": "alice", claim: value}), NOW) == NOT_ACCEPTED


def test_the_expiry_of_an_unsigned_token_is_not_revealed() -> None:
    assert VERIFIER.verify(signed({"sub": "a", "exp": 1}, OTHER_SECRET), NOW) == NOT_ACCEPTED


# -- bytes that are no token --


def test_an_oversize_token_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fits(filler: int) -> bool:
        token = signed({"sub": "alice", "filler": "x" * filler})
        return isinstance(VERIFIER.verify(token, NOW), Verified)

    assert fits(12_000)
    assert not fits(LARGEST_TOKEN)
    monkeypatch.setattr(jws, "extract_compact", pytest.fail)
    assert VERIFIER.verify(b"." * (LARGEST_TOKEN + 1), NOW) == NOT_ACCEPTED


@given(st.binary(max_size=200))
@example(b"")
@example(b"..")
@example(b"a.b.c")
@example(b"a.b.c.d.e")
def test_any_bytes_are_not_accepted(data: bytes) -> None:
    assert VERIFIER.verify(data, NOW) == NOT_ACCEPTED


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["alg", "crit", "b64", "kid", "typ", "sub", "exp"]), inner
        )
    ),
    max_leaves=6,
)


@given(json_values)
@example("alg")
@example(["alg"])
@example({"alg": "HS256", "crit": 1})
@example({"alg": "HS256", "crit": [[]]})
@example({"alg": ["HS256"]})
@example({"alg": {}})
@example({"alg": "HS256", "b64": False})
@example({"alg": "HS256", "kid": 1})
def test_no_header_makes_it_raise(header: object) -> None:
    token = handmade(json.dumps(header).encode(), b'{"sub":"alice"}')
    answer = VERIFIER.verify(token, NOW)
    assert answer == NOT_ACCEPTED or (isinstance(header, dict) and header["alg"] == "HS256")


@given(json_values)
def test_no_claims_make_it_raise(claims: object) -> None:
    VERIFIER.verify(signed(claims), NOW)


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"null", b'"sub"', b"\xff", b'{"sub":"a"', b"[" * 10_000, b"1" * 10_000,
                '{"sub":"a"}'.encode("utf-16")]
)  # fmt: skip
def test_a_payload_that_is_no_object_is_not_accepted(payload: bytes) -> None:
    assert VERIFIER.verify(signed(payload), NOW) == NOT_ACCEPTED


def test_a_deeply_nested_header_is_not_accepted() -> None:
    assert VERIFIER.verify(handmade(b"[" * 8_000, b"{}"), NOW) == NOT_ACCEPTED


def test_denials_reveal_nothing_about_the_token() -> None:
    assert NOT_ACCEPTED.text == "token not accepted"
    assert EXPIRED.text == "token expired"


@pytest.mark.parametrize(
    ("token", "cause"),
    [
        (b"garbage", "this is no JSON Web Token"),
        (signed({"sub": "a"}, SECRET, "HS512"), "the algorithm is not allowed (alg='HS512')"),
        (signed({"sub": "a", "iss": "x"}, OTHER_SECRET), "no key fits the signature (kid=None, "),
        (signed({"sub": "a", "aud": "them"}), "the audience is not us (aud='them')"),
        (signed({"sub": "a", "aud": "us", "iss": "x"}), "the issuer is not issuer (iss='x')"),
        (signed({"name": "a"}), "this is no name of a principal (sub=None)"),
        (signed({"sub": "a", "aud": "us", "iss": "issuer", "exp": 1}), "exp=1"),
        (
            signed({"sub": "a", "aud": "us", "iss": "issuer", "nbf": NOW + 9}),
            f"it is not valid yet (nbf={NOW + 9})",
        ),
    ],
)
def test_the_operator_gets_the_cause_and_the_client_does_not(token: bytes, cause: str) -> None:
    verifier = TokenVerifier([SECRET], ["HS256"], audience="us", issuer="issuer")
    denial = verifier.verify(token, NOW)
    assert isinstance(denial, Denial)
    assert denial.detail.startswith(f"{denial.text}: {cause}")
    assert cause not in denial.text


def test_a_cause_quotes_a_bounded_part_of_a_token() -> None:
    denial = TokenVerifier([SECRET], ["HS256"], audience="us").verify(
        signed({"sub": "a", "aud": "x" * 5_000}), NOW
    )
    assert isinstance(denial, Denial)
    assert len(denial.cause) < LONGEST_CAUSE + 50


# -- configuration --


@pytest.mark.parametrize(
    ("keys", "algorithms", "reason"),
    [
        ([], ["HS256"], "needs the keys of their issuer"),
        ([SECRET], [], r"\(none\) cannot be used; name one or more of HS256"),
        ([SECRET], ["none"], "none cannot be used"),
        ([SECRET], ["HS256", "none"], "none cannot be used"),
        ([SECRET], ["hs256"], "hs256 cannot be used"),
        ([SECRET], ["HS256", "RS256"], "mix shared secrets"),
        ([SECRET, RSA], ["HS256", "RS256"], "mix shared secrets"),
        ([SECRET], ["RS256"], "a secret of 64 bytes.* fits none of the algorithms RS256"),
        ([RSA], ["HS256"], "a public key of type RSA.* fits none"),
        ([SECRET, RSA], ["HS256"], "fits none"),
        ([EC["ES384"]], ["ES256"], "fits none"),
        ([OctKey.import_key(bytes(range(40)))], ["HS512"], "a secret of 40 bytes"),
    ],
)
def test_keys_and_algorithms_that_do_not_fit_are_explained(
    keys: list[TokenKey], algorithms: list[str], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        TokenVerifier(keys, algorithms)


@pytest.mark.parametrize(
    "name", ["\ud800", "alice\udfff", "alice\n", "\0", "a\x1b[2Jb", "alice\x7f", "\x85"]
)
def test_a_name_that_cannot_be_sent_or_shown_is_not_accepted(name: str) -> None:
    """Half of a surrogate pair cannot be sent to a broker, and raised long after verification."""
    verifier = TokenVerifier([SECRET], ["HS256"])
    assert verifier.verify(signed({"sub": name}), NOW) == NOT_ACCEPTED


@pytest.mark.parametrize(
    "name", ["alice", "spiffe://a/b c", "\u00e9", "\u7530\u4e2d", "\U0001f600"]
)
def test_names_of_all_scripts_are_accepted(name: str) -> None:
    verifier = TokenVerifier([SECRET], ["HS256"])
    assert verifier.verify(signed({"sub": name}), NOW) == Verified(name, None)


def test_a_name_that_is_too_long_is_not_accepted() -> None:
    """The name would be kept for each connection, and in the keys of limits."""
    longest = "x" * LONGEST_NAME
    assert VERIFIER.verify(signed({"sub": longest}), NOW) == Verified(longest, None)
    assert VERIFIER.verify(signed({"sub": longest + "x"}), NOW) == NOT_ACCEPTED
