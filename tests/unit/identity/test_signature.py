"""Signatures of TubeMQ, tokens that stand for them, and the file of users."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigurationError
from gateway.identity import signature
from gateway.identity.signature import Signed, Text, read, read_users

NOW = 1_795_167_970.9
SECRET = b"secret"
CAPTURED = "alice 1795167970960 530103985 p1FQwgBMr2ijoL6C7Mtf0yyMYxo%3D"
"""What a client in Java has signed with `secret`."""


def test_what_a_real_client_has_signed_is_its_users() -> None:
    shown = read(CAPTURED)
    assert shown == Signed("alice", 1795167970960, "530103985", "p1FQwgBMr2ijoL6C7Mtf0yyMYxo%3D")
    assert isinstance(shown, Signed)
    assert signature.is_signed(shown, SECRET)
    assert not signature.is_signed(shown, b"Secret")
    assert not signature.is_signed(shown._replace(at=shown.at + 1), SECRET)


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "alice",
        "alice 1 2",
        "alice x 2 s",
        "alice 1 -2 s",
        "alice 1 ² s",
        "alice x t:code",
        "t:",
    ],
)
def test_what_is_neither_a_signature_nor_a_token_is_nothing(shown: str) -> None:
    assert read(shown) is None


def test_a_name_may_have_spaces() -> None:
    made = signature.signature(SECRET, "a b", 5, "6")
    shown = read(f"a b 5 6 {made}")
    assert isinstance(shown, Signed)
    assert shown.user == "a b"
    token = read(signature.tokens("a b", SECRET, "client", NOW).text)
    assert isinstance(token, Text)
    assert token.user == "a b"


def test_a_text_is_for_its_user_and_time() -> None:
    token = read(signature.tokens("alice", SECRET, "client", NOW).text)
    assert isinstance(token, Text)
    assert token.until == int(NOW + signature.TOKEN_LIFE)
    assert signature.is_made_here(token, SECRET)
    assert not signature.is_made_here(token, b"other")
    assert not signature.is_made_here(token._replace(user="alice2"), SECRET)
    assert not signature.is_made_here(token._replace(until=token.until + 1), SECRET)


def test_a_text_is_no_signature_and_tells_no_more_than_one() -> None:
    made = signature.tokens("alice", SECRET, "client", NOW)
    again = signature.tokens("alice", SECRET, "client", NOW)
    assert made == again
    assert isinstance(read(made.text), Text)


@pytest.mark.parametrize(("later", "is_valid"), [(0, True), (600, True), (1000, False)])
def test_a_number_is_for_its_user_and_client_and_for_a_time(later: int, is_valid: bool) -> None:
    number = signature.tokens("alice", SECRET, "client", NOW).number
    assert 0 < number < 1 << 63
    assert signature.may_be(number) == signature.short("alice")
    assert signature.is_number_of(number, "alice", SECRET, "client", NOW + later) is is_valid
    assert not signature.is_number_of(number, "alice", SECRET, "client2", NOW)
    assert not signature.is_number_of(number, "alice", b"other", "client", NOW)
    assert not signature.is_number_of(number ^ 1, "alice", SECRET, "client", NOW)


def test_a_file_has_users_one_in_a_line() -> None:
    content = b"# ours\n\nalice:sec:ret \nb\xc3\xb6b:x\n"
    assert read_users(content, "The file") == {"alice": b"sec:ret ", "böb": b"x"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "The file names nobody; a line is name:password"),
        (b"alice", "The file, line 1, is not name:password"),
        (b"alice:", "The file, line 1, is not name:password"),
        (b":secret", "The file, line 1, is not name:password"),
        (b"a\tb:secret", "The file, line 1, is not name:password"),
        (b"a:1\na:2", "The file, line 2, has a name that is there before"),
    ],
)
def test_a_wrong_file_is_a_clear_error_without_passwords(content: bytes, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_users(content, "The file")
    assert str(raised.value) == complaint
