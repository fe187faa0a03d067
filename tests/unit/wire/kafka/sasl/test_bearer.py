"""OAUTHBEARER: whose tokens are accepted, and how a refusal goes."""

from __future__ import annotations

import json

import pytest

from gateway.wire.contract import Credential, Denial, Principal
from gateway.wire.kafka.sasl.bearer import REFUSED, UNDERSTOOD, read, written
from gateway.wire.kafka.sasl.exchange import LARGEST_TOKEN, MALFORMED, Accepted
from tests.unit.wire.kafka.sasl.doubles import WRONG, SaslServices, verified

JWT = b"eyJh.eyJz_-.c2ln"
MECHANISM = "OAUTHBEARER"


class Tokens(SaslServices):
    """Knows the token of alice, who is called `alice@a` here."""

    def _principal(self, credential: Credential) -> Principal | Denial:
        if credential == Credential("token", JWT):
            return Principal("alice@a", verified=True, expires_at=1000.0)
        return WRONG


@pytest.mark.parametrize("settles", [False, True])
@pytest.mark.parametrize(
    ("token", "extensions"),
    [
        (written(JWT, {}), {}),
        (
            written(JWT, {"logicalCluster": "lkc-1", "x": "a=b, c"}),
            {"logicalCluster": "lkc-1", "x": "a=b, c"},
        ),
        (b"n,a=alice@a,\x01auth=Bearer " + JWT + b"\x01\x01", {}),
        (b"y,,\x01auth=bearer  " + JWT + b"\x01\x01", {}),
        (
            b"n,,\x01host=a.example\x01port=9092\x01auth=Bearer " + JWT + b"\x01\x01",
            {"host": "a.example", "port": "9092"},
        ),
    ],
)
def test_a_right_token_is_accepted_with_what_else_the_client_says(
    token: bytes, extensions: dict[str, str], settles: bool
) -> None:
    played = verified(MECHANISM, token, services=Tokens(settles=settles))
    alice = Principal("alice@a", verified=True, expires_at=1000.0)
    assert played == (Accepted(alice, b"", Credential("token", JWT), extensions), [])


@pytest.mark.parametrize("response", [UNDERSTOOD, b"", b"anything"])
def test_a_wrong_token_is_refused_once_the_client_has_understood(response: bytes) -> None:
    played = verified(MECHANISM, written(b"a.b.c", {}), response, services=Tokens())
    assert played == (WRONG, [REFUSED])
    assert json.loads(REFUSED) == {"status": "invalid_token"}


def test_a_token_of_somebody_else_is_refused_alike() -> None:
    token = b"n,a=bob,\x01auth=Bearer " + JWT + b"\x01\x01"
    assert verified(MECHANISM, token, UNDERSTOOD, services=Tokens()) == (MALFORMED, [REFUSED])


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(JWT, id="a token alone"),
        pytest.param(b"n,,\x01auth=Bearer " + JWT + b"\x01", id="torn"),
        pytest.param(b"n,,\x01\x01", id="no pair"),
        pytest.param(b"n,,\x01host=a\x01\x01", id="no token"),
        pytest.param(b"n,,\x01auth=Bearer \x01\x01", id="an empty token"),
        pytest.param(b"n,,\x01auth=Basic " + JWT + b"\x01\x01", id="another scheme"),
        pytest.param(b"n,,\x01auth=Bearer a b\x01\x01", id="a space in it"),
        pytest.param(b"n,,\x01auth=Bearer a:b\x01\x01", id="a colon in it"),
        pytest.param(b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01", id="two tokens"),
        pytest.param(b"n,,\x01x=1\x01auth=Bearer a\x01x=2\x01\x01", id="a pair twice"),
        pytest.param(b"n,,\x01auth=Bearer a\x01x=\x01\x01", id="an empty value"),
        pytest.param(b"n,,\x01auth=Bearer a\x01x1=1\x01\x01", id="a key that is none"),
        pytest.param(b"n,,\x01auth=Bearer a\x01x=\0\x01\x01", id="a NUL"),
        pytest.param(b"n,,\x01auth=Bearer \xff\x01\x01", id="no UTF-8"),
        pytest.param("n,,\x01auth=Bearer ä\x01\x01".encode(), id="beyond ASCII"),
        pytest.param(b"p=x,,\x01auth=Bearer a\x01\x01", id="bound to the channel"),
        pytest.param(b"n,b=x,\x01auth=Bearer a\x01\x01", id="another field"),
        pytest.param(b"n,,\x01auth=Bearer " + b"a" * LARGEST_TOKEN + b"\x01\x01", id="huge"),
    ],
)
def test_a_malformed_token_is_refused_and_nobody_is_asked(token: bytes) -> None:
    services = Tokens()
    assert verified(MECHANISM, token, services=services) == (MALFORMED, [])
    assert services.shown == []


@pytest.mark.parametrize("rest", [b"x=1\x01" * 7_000, b"x" * 30_000, b"\x01" * 30_000])
def test_a_long_message_is_read_in_one_go(rest: bytes) -> None:
    """These would keep a pattern busy that tries again."""
    assert read(b"n,,\x01" + rest) is None


def test_no_token_is_shown_in_a_text() -> None:
    assert "eyJ" not in repr(read(written(JWT, {})))
