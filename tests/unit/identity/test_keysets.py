"""What counts of the keys that an issuer publishes."""

from __future__ import annotations

import contextlib
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.errors import ConfigurationError
from gateway.identity.keysets import MOST_KEYS, FixedKeys, KeySet, key_set, read_key_set
from tests.support.issuer import SigningKey, encoded, published

RSA = RSAKey.generate_key(2048)
EC = ECKey.generate_key("P-256")
OKP = OKPKey.generate_key("Ed25519")
FINE = EC.as_dict(private=False)


def read(*keys: object) -> KeySet:
    return read_key_set(json.dumps({"keys": keys}).encode(), "The set")


@pytest.mark.parametrize(
    "key",
    [RSA, EC, ECKey.generate_key("P-384"), ECKey.generate_key("P-521"), OKP],
    ids=lambda key: key.key_type,
)
def test_keys_that_verify_signatures_are_taken(key: RSAKey | ECKey | OKPKey) -> None:
    ((id, found),) = read({**key.as_dict(private=False), "kid": "one"})
    assert id == "one"
    assert found.as_dict() == key.as_dict(private=False) | {"kid": "one"}


@pytest.mark.parametrize("use", [{}, {"use": "sig"}])
def test_a_key_may_say_what_it_is_for(use: dict[str, str]) -> None:
    assert len(read(FINE | use)) == 1


def test_keys_keep_their_order_and_ids() -> None:
    keys = [SigningKey("b"), SigningKey(None), SigningKey("a")]
    assert [id for id, _ in read_key_set(published(*keys), "The set")] == ["b", None, "a"]


@pytest.mark.parametrize("id", [1, None, ["a"], {"a": 1}, True])
def test_an_id_that_is_no_text_counts_as_none(id: object) -> None:
    assert [id for id, _ in read(FINE | {"kid": id}, FINE)][-1] is None
    assert id not in [known for known, _ in read(FINE | {"kid": id}, FINE) if known is not None]


SKIPPED: dict[str, object] = {
    "a secret": OctKey.generate_key(256).as_dict(),
    "a short secret": {"kty": "oct", "k": "YQ"},
    "a weak RSA key": {"kty": "RSA", "e": "AQAB", "n": encoded(b"\xc1" * 128)},
    "another curve": ECKey.generate_key("secp256k1").as_dict(private=False),
    "Ed448": OKPKey.generate_key("Ed448").as_dict(private=False),
    "X25519": OKPKey.generate_key("X25519").as_dict(private=False),
    "for encryption": FINE | {"use": "enc"},
    "for an odd use": FINE | {"use": ["sig"]},
    "an unknown kind": FINE | {"kty": "AKP"},
    "a kind that is a list": FINE | {"kty": ["EC"]},
    "no kind": {"kid": "one"},
    "a part that is missing": {"kty": "EC", "crv": "P-256", "x": FINE["x"]},
    "a part that is a number": FINE | {"x": 1},
    "a point that is not on the curve": FINE | {"y": FINE["x"]},
    "no base64": FINE | {"x": "???"},
    "a text": "key",
    "a list": [FINE],
    "null": None,
    "a number": 1,
}


@pytest.mark.parametrize("other", SKIPPED.values(), ids=SKIPPED)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_other_keys_are_skipped(other: object) -> None:
    assert [id for id, _ in read(other, FINE | {"kid": "fine"}, other)] == ["fine"]
    with pytest.raises(ConfigurationError, match=r"^The set holds no key that verifies"):
        read(other)


def test_of_a_private_key_the_public_part_is_taken() -> None:
    ((_, key),) = read(EC.as_dict(private=True))
    assert not key.is_private


def test_no_more_than_the_most_keys_are_taken() -> None:
    assert len(read(*[FINE] * (MOST_KEYS + 1))) == MOST_KEYS


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html></html>",
        b"null",
        b"[]",
        b'"keys"',
        b"{}",
        b'{"keys": 1}',
        b'{"keys": null}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"keys": ' + b"[" * 100_000,
        b'{"keys": [' + b"1" * 10_000 + b"]}",
    ],
    ids=lambda content: content[:20].decode(errors="replace"),
)
def test_what_is_no_set_is_explained(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"^The set holds no JSON Web Key Set$"):
        read_key_set(content, "The set")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(
    st.sampled_from([RSA, EC, OKP]),
    st.dictionaries(
        st.sampled_from(
            ["kty", "crv", "x", "y", "n", "e", "d", "p", "use", "kid", "key_ops", "alg"]
        ),
        json_values,
    ),
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_no_key_makes_it_raise_anything_else(key: Any, changed: dict[str, object]) -> None:
    with contextlib.suppress(ConfigurationError):
        read(key.as_dict(private=False) | changed)


# -- files --


def test_a_set_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(published(SigningKey("one")))
    assert [id for id, _ in key_set(path)] == ["one"]
    path.write_bytes(b"data:;base64," + b64encode(published(SigningKey("two"))))
    assert [id for id, _ in key_set(path)] == ["two"]


def test_a_file_without_a_set_is_named(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(ConfigurationError, match=f"^The key set file {path} cannot be read: No su"):
        key_set(path)
    path.write_bytes(b"{}")
    with pytest.raises(ConfigurationError, match=f"^The key set file {path} holds no JSON Web Key"):
        key_set(path)


# -- keys that never change --


async def test_fixed_keys_verify_tokens_of_any_id() -> None:
    keys = FixedKeys([EC, RSA])
    assert list(keys.of(None)) == list(keys.of("any")) == [EC, RSA]
    assert not keys.may_gain("any")
    assert await keys.renew()
