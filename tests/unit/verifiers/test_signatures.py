"""Who has signed: what is accepted, for how long, and what a change of the file does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import model
from gateway.errors import ConfigurationError
from gateway.identity import signature
from gateway.identity.verified import Verified
from gateway.verifiers import Needs
from gateway.verifiers.signatures import (
    EXPIRED,
    LATE,
    WRONG,
    SignatureVerifier,
    make_verifier,
)
from gateway.wire.services import NUMBER_SHOWN

NOW = 1_795_167_970.96
WINDOW = 20.0
CAPTURED = b"alice 1795167970960 530103985 p1FQwgBMr2ijoL6C7Mtf0yyMYxo%3D"
SECRET = b"secret"


class Setting:
    """A verifier of the users in a file, and what it logs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "users"
        self.path.write_text("alice:secret\nbob:builder")
        self.logged: list[str] = []
        needs = Needs(lambda event, **_: self.logged.append(event))
        settings = model.Signature.model_construct(users_file=self.path, window=WINDOW)
        self.verifier: SignatureVerifier = make_verifier(settings, needs)

    def write(self, content: str) -> None:
        """Replace the file, as editors do."""
        new = self.path.with_suffix(".new")
        new.write_text(content)
        new.rename(self.path)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def number(value: int, client: bytes) -> bytes:
    return NUMBER_SHOWN + value.to_bytes(8) + client


def test_a_signature_of_now_is_accepted(setting: Setting) -> None:
    for at in (NOW - WINDOW, NOW, NOW + WINDOW - 0.1):
        assert setting.verifier.verify(CAPTURED, at) == Verified("alice", None)


@pytest.mark.parametrize("off", [-WINDOW - 0.1, WINDOW + 0.1, 1e9])
def test_one_of_another_time_is_late(setting: Setting, off: float) -> None:
    assert setting.verifier.verify(CAPTURED, NOW + off) is LATE


@pytest.mark.parametrize(
    "shown",
    [
        b"",
        b"\xff\xfe",
        CAPTURED.replace(b"alice", b"bob"),
        CAPTURED.replace(b"alice", b"carol"),
        CAPTURED.replace(b"p1FQ", b"p1FR"),
        CAPTURED[:-4],
        b"alice 1795167970960 530103985 bogus",
        NUMBER_SHOWN,
        NUMBER_SHOWN + b"short",
    ],
)
def test_what_is_wrong_is_refused_alike(setting: Setting, shown: bytes) -> None:
    assert setting.verifier.verify(shown, NOW) is WRONG


def test_tokens_stand_for_a_signature_until_they_expire(setting: Setting) -> None:
    verifier = setting.verifier
    tokens = verifier.tokens(CAPTURED, "c1", NOW)
    assert tokens is not None
    end = int(NOW + signature.TOKEN_LIFE)
    assert verifier.verify(tokens.text.encode(), NOW) == Verified("alice", end)
    assert verifier.verify(tokens.text.encode(), end) is EXPIRED
    assert verifier.verify(number(tokens.number, b"c1"), NOW) == Verified("alice", None)
    assert verifier.verify(number(tokens.number, b"c2"), NOW) is WRONG
    assert verifier.verify(number(tokens.number, b"c1"), NOW + 1000) is WRONG


def test_a_token_gets_newer_ones(setting: Setting) -> None:
    tokens = setting.verifier.tokens(CAPTURED, "c1", NOW)
    assert tokens is not None
    newer = setting.verifier.tokens(tokens.text.encode(), "c1", NOW + 60)
    assert newer is not None
    assert setting.verifier.verify(newer.text.encode(), NOW + 930) == Verified(
        "alice", int(NOW + 960)
    )


def test_another_gateway_with_the_same_users_knows_them(setting: Setting, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    tokens = setting.verifier.tokens(CAPTURED, "c1", NOW)
    assert tokens is not None
    assert Setting(other).verifier.verify(tokens.text.encode(), NOW).name == "alice"  # type: ignore[union-attr]


def test_a_new_password_and_a_removed_user_end_tokens(setting: Setting) -> None:
    tokens = setting.verifier.tokens(CAPTURED, "c1", NOW)
    assert tokens is not None
    for content in ("alice:other", "bob:builder"):
        setting.write(content)
        assert setting.verifier.verify(tokens.text.encode(), NOW) is WRONG
        assert setting.verifier.verify(number(tokens.number, b"c1"), NOW) is WRONG
        assert setting.verifier.verify(CAPTURED, NOW) is WRONG
    assert setting.verifier.tokens(CAPTURED, "c1", NOW) is None


def test_a_file_that_becomes_wrong_leaves_the_last_good_one(setting: Setting) -> None:
    setting.write("alice")
    assert setting.verifier.verify(CAPTURED, NOW) == Verified("alice", None)
    assert setting.logged == ["password_file_unusable"]


def test_a_file_that_is_wrong_at_the_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice")
    settings = model.Signature.model_construct(users_file=tmp_path / "users", window=WINDOW)
    with pytest.raises(ConfigurationError, match="line 1, is not name:password"):
        make_verifier(settings, Needs(lambda *_, **__: None))
