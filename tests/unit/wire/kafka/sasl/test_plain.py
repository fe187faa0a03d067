"""PLAIN: whose tokens are accepted, and what cannot be smuggled in one."""

from __future__ import annotations

import pytest

from gateway.wire.contract import Credential, Principal
from gateway.wire.kafka.sasl.exchange import LARGEST_TOKEN, MALFORMED, Accepted
from gateway.wire.kafka.sasl.plain import Shown, read, written
from tests.unit.wire.kafka.sasl.doubles import WRONG, SaslServices, verified

ALICE = Credential("basic", b"alice:secret")


@pytest.mark.parametrize("settles", [False, True])
@pytest.mark.parametrize("behalf", [b"", b"alice"])
def test_a_right_password_is_accepted(behalf: bytes, settles: bool) -> None:
    services = SaslServices(settles=settles)
    played = verified("PLAIN", behalf + b"\0alice\0secret", services=services)
    assert played.outcome == Accepted(Principal("alice", verified=True), b"", ALICE)
    assert played.challenges == []
    assert services.certificates == [b"certificate"]


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0bob\0secret", b"\0ALICE\0secret"])
def test_a_wrong_password_is_answered_like_an_unknown_user(token: bytes) -> None:
    assert verified("PLAIN", token) == (WRONG, [])


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"alice\0secret", id="one NUL"),
        pytest.param(b"\0alice\0secret\0", id="three NULs"),
        pytest.param(b"\0alice\0sec\0ret", id="a NUL in the password"),
        pytest.param(b"\0\0secret", id="no name"),
        pytest.param(b"\0alice\0", id="no password"),
        pytest.param(b"bob\0alice\0secret", id="on behalf of somebody else"),
        pytest.param(b"ALICE\0alice\0secret", id="on behalf of almost the same"),
        pytest.param(b"\0\xff\0secret", id="a name that is not UTF-8"),
        pytest.param(b"\0alice\0\xff", id="a password that is not UTF-8"),
        pytest.param(b"\0\xed\xa0\x80\0secret", id="half of a surrogate pair"),
        pytest.param(b"\0alice:secret\0x", id="a colon in the name"),
        pytest.param(b"\0alice:\0secret", id="a colon behind the name"),
        pytest.param(b"\0" * LARGEST_TOKEN, id="NULs alone"),
        pytest.param(b"\0alice\0" + b"x" * LARGEST_TOKEN, id="huge"),
    ],
)
def test_a_malformed_token_is_refused_and_nobody_is_asked(token: bytes) -> None:
    services = SaslServices()
    assert verified("PLAIN", token, services=services) == (MALFORMED, [])
    assert services.shown == []


def test_a_password_may_hold_colons() -> None:
    services = SaslServices()
    verified("PLAIN", b"\0alice\0:a:b", services=services)
    assert services.shown == [Credential("basic", b"alice::a:b")]


def test_a_token_of_ours_is_read_as_it_was_written() -> None:
    assert read(written("älice".encode(), b"s:e,c=")) == Shown("älice", b"s:e,c=")


def test_no_password_is_shown_in_a_text() -> None:
    assert "secret" not in repr(read(b"\0alice\0secret"))
