"""Names and passwords by which brokers know each client."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.identity.each_principal import LARGEST, EachPrincipal, read_passwords
from gateway.wire.contract import Credential, Denial

ALICE = b'alice: {username: at-kafka, password: "se:cret"}\n'
OTHERS = b'"*": {username: guest, password: guest}\n'
SHOWN = Credential("basic", b"at-kafka:se:cret")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "passwords.yaml"
    path.write_bytes(ALICE)
    return path


def test_a_client_is_shown_by_its_own_name(path: Path) -> None:
    assert EachPrincipal(path).of("alice") == SHOWN


@pytest.mark.parametrize("principal", ["bob", "", None])
def test_others_are_refused_unless_a_line_is_for_them(path: Path, principal: str | None) -> None:
    assert isinstance(EachPrincipal(path).of(principal), Denial)
    path.write_bytes(ALICE + OTHERS)
    assert EachPrincipal(path).of(principal) == Credential("basic", b"guest:guest")


def test_nobody_is_shown_nothing(path: Path) -> None:
    assert EachPrincipal(path).current() == Credential("none", b"")


def test_a_changed_file_is_read_again_and_one_that_is_wrong_is_not_used(path: Path) -> None:
    events: list[str] = []
    passwords = EachPrincipal(path, lambda event, **_: events.append(event))
    path.write_bytes(b"bob: {username: b, password: c}\n")
    os.utime(path, ns=(1, 1))
    assert passwords.of("bob") == Credential("basic", b"b:c")
    assert isinstance(passwords.of("alice"), Denial)
    path.write_bytes(b"alice: torn")
    os.utime(path, ns=(2, 2))
    assert passwords.of("bob") == Credential("basic", b"b:c")
    path.unlink()
    assert passwords.of("bob") == Credential("basic", b"b:c")
    assert events == ["token_file_unusable"] * 2


WRONG = {
    "names nobody": b"",
    "names nobody ": b"[alice]",
    "is not YAML, line 2": b"alice:\n\t- {",
    "is not YAML": b"\xff\xfe\x00",
    "has a name, number 2, that is no text; put it in quotes": ALICE + b"7: {}",
    "has in line 2 a name again": ALICE + ALICE,
    "has under name 1 no username and password alone": b"a: {username: b}",
    "has under name 1 no username and password": b"a: {username: b, password: c, x: d}",
    "has under name 1 what is no text; put it in quotes": b"a: {username: b, password: 123}",
    "has under name 1 what is no text": b'a: {username: b, password: ""}',
    "has under name 1 a username with a colon": b'a: {username: "b:c", password: d}',
    f"has more than {LARGEST} bytes": b"#" * (LARGEST + 1),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_without_any_password(text: str) -> None:
    with pytest.raises(ConfigurationError) as found:
        read_passwords(WRONG[text])
    assert text.strip() in str(found.value)


def test_the_start_says_what_is_wrong_and_what_would_be_right(tmp_path: Path) -> None:
    path = tmp_path / "passwords.yaml"
    path.write_bytes(b"alice: secret")
    with pytest.raises(ConfigurationError, match="must hold a username") as found:
        EachPrincipal(path)
    assert "secret" not in str(found.value)
