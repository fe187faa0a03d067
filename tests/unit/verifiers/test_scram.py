"""Passwords that are not shown: whose are accepted, and what a change of the file does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config import model
from gateway.errors import ConfigurationError
from gateway.identity.scram import line
from gateway.identity.verified import Verified
from gateway.verifiers import Needs
from gateway.verifiers.scram import WRONG, ScramVerifier, make_verifier

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
SALT = b"0123456789abcdef"
ALICE = line("alice", "secret", SHA_256, 4096, SALT)
OTHER = line("alice", "other", SHA_256, 4096, SALT)


class Setting:
    """A verifier of the users in a file, and what it logs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "users"
        self.path.write_text(ALICE)
        self.logged: list[str] = []
        needs = Needs(lambda event, **_: self.logged.append(event), secret=b"key")
        settings = model.Scram.model_construct(credentials_file=self.path)
        self.verifier: ScramVerifier = make_verifier(settings, needs)

    def write(self, content: str) -> None:
        """Replace the file, as editors do."""
        new = self.path.with_suffix(".new")
        new.write_text(content)
        new.rename(self.path)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def test_who_knows_the_password_of_a_user_is_the_user(setting: Setting) -> None:
    secret = setting.verifier.secret("alice", SHA_256)
    assert (secret.salt, secret.iterations) == (SALT, 4096)
    assert setting.verifier.proven(secret, right=True) == Verified("alice", None)
    assert setting.verifier.proven(secret, right=False) is WRONG


@pytest.mark.parametrize(
    ("user", "mechanism"), [("bob", SHA_256), ("alice", SHA_512), ("", SHA_256)]
)
def test_who_is_not_known_is_nobody_whatever_was_shown(
    setting: Setting, user: str, mechanism: str
) -> None:
    secret = setting.verifier.secret(user, mechanism)
    assert setting.verifier.proven(secret, right=True) is WRONG


def test_nobody_is_believed_who_names_the_method(setting: Setting) -> None:
    assert setting.verifier.verify(b"alice", 0.0) is WRONG
    assert setting.verifier.verify(ALICE.encode(), 0.0) is WRONG


@pytest.mark.parametrize("content", [OTHER, line("bob", "secret", SHA_256, 4096, SALT)])
def test_a_password_that_is_changed_or_taken_away_meanwhile_is_refused(
    setting: Setting, content: str
) -> None:
    secret = setting.verifier.secret("alice", SHA_256)
    setting.write(content)
    assert setting.verifier.proven(secret, right=True) is WRONG


def test_a_secret_that_was_changed_is_nobodys(setting: Setting) -> None:
    secret = replace(setting.verifier.secret("alice", SHA_256), user="bob")
    assert setting.verifier.proven(secret, right=True) is WRONG


def test_a_new_user_is_known_at_once(setting: Setting) -> None:
    before = setting.verifier.secret("bob", SHA_256)
    setting.write(f"{ALICE}\n{line('bob', 'secret', SHA_256, 4096, b'another salt')}")
    after = setting.verifier.secret("bob", SHA_256)
    assert before.salt != after.salt == b"another salt"
    assert setting.verifier.proven(after, right=True) == Verified("bob", None)


def test_a_file_that_becomes_wrong_is_logged_once_and_the_last_good_one_counts(
    setting: Setting,
) -> None:
    setting.write("alice:secret")
    for _ in range(3):
        secret = setting.verifier.secret("alice", SHA_256)
        assert setting.verifier.proven(secret, right=True) == Verified("alice", None)
    assert setting.logged == ["password_file_unusable"]


def test_a_wrong_file_is_explained_at_the_start(tmp_path: Path) -> None:
    settings = model.Scram.model_construct(credentials_file=tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"^The credentials file .* cannot be read: No"):
        make_verifier(settings, Needs(pytest.fail))
