"""Which hashes of passwords are taken, and what is said of others."""

from __future__ import annotations

import contextlib
import re

import argon2
import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.identity.htpasswd import LEAST_COST, LEAST_MEMORY, is_right, read_users

MAKE = "make the line with: htpasswd -nB -C 12 <user>"
# Fixed, as they are in the names of tests, which all processes of a run must agree on.
BCRYPT = bcrypt.hashpw(b"secret", b"$2b$%02d$abcdefghijklmnopqrstuu" % LEAST_COST).decode()
ARGON2ID = argon2.PasswordHasher(5, LEAST_MEMORY, 1).hash(b"secret", salt=bytes(16))


def of_kind(kind: argon2.Type, memory: int = LEAST_MEMORY) -> str:
    return argon2.PasswordHasher(1, memory, 1, type=kind).hash(b"secret", salt=bytes(16))


@pytest.mark.parametrize("prefix", ["$2y$", "$2b$", "$2a$"])
def test_all_spellings_of_bcrypt_are_taken(prefix: str) -> None:
    hash = prefix + BCRYPT[4:]
    assert read_users(f"alice:{hash}".encode(), "The file") == {"alice": hash}
    assert is_right(hash, b"secret")
    assert not is_right(hash, b"Secret")
    assert not is_right(hash, b"")


def test_argon2id_is_taken() -> None:
    assert read_users(f"alice:{ARGON2ID}".encode(), "The file") == {"alice": ARGON2ID}
    assert is_right(ARGON2ID, b"secret")
    assert not is_right(ARGON2ID, b"Secret")


def test_empty_lines_and_comments_are_skipped() -> None:
    content = f"# users\n\n  \nalice:{BCRYPT}  \r\nbob:{BCRYPT}\n#carol:{BCRYPT}"
    assert list(read_users(content.encode(), "The file")) == ["alice", "bob"]


def test_names_are_utf_8() -> None:
    assert list(read_users(f"Zoë Müller:{BCRYPT}".encode(), "The file")) == ["Zoë Müller"]


WEAK = {
    "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/": "neither bcrypt nor argon2id",
    "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=": "neither bcrypt nor argon2id",
    "rqXexS6ZhobKA": "neither bcrypt nor argon2id",
    "secret": "neither bcrypt nor argon2id",
    "": "neither bcrypt nor argon2id",
    "$5$salt$hash": "neither bcrypt nor argon2id",
    "$6$salt$hash": "neither bcrypt nor argon2id",
    "$2x$" + BCRYPT[4:]: "neither bcrypt nor argon2id",
    "$2$" + BCRYPT[4:]: "neither bcrypt nor argon2id",
    of_kind(argon2.Type.I): "neither bcrypt nor argon2id",
    of_kind(argon2.Type.D): "neither bcrypt nor argon2id",
    of_kind(argon2.Type.ID, 7167): "argon2id of 7167 KiB, below 7168",
    of_kind(argon2.Type.ID): "argon2id of 7168 KiB times passes, not from 35840 to 3584000",
    "$2y$31$" + BCRYPT[7:]: "bcrypt of cost 31, above 16",
    "$2y$05$" + BCRYPT[7:]: "bcrypt of cost 5, below 10",
    "$2y$09$" + BCRYPT[7:]: "bcrypt of cost 9, below 10",
    "$argon2id$v=19$m=x,t=1,p=1$c2FsdA$aGFzaA": "an argon2id hash that is not whole",
    "$argon2id$": "an argon2id hash that is not whole",
}
NOT_WHOLE = [
    *("$2y$", "$2y$10$", BCRYPT[:-1], BCRYPT + "a", BCRYPT[:-1] + "!", BCRYPT + ":x"),
    *(f"$2y${cost}${BCRYPT[7:]}" for cost in ("1", "32", "99", "1x", "-1", "²0")),
    *(f"$2y$10x{BCRYPT[7:]}", BCRYPT[:-1] + "é", BCRYPT[:20] + " " + BCRYPT[21:]),
]
"""Hashes that bcrypt would raise for when somebody shows a password."""


@pytest.mark.parametrize(
    ("hash", "reason"),
    [*WEAK.items(), *((hash, "a bcrypt hash that is not whole") for hash in NOT_WHOLE)],
)
def test_a_weak_or_broken_hash_is_explained(hash: str, reason: str) -> None:
    content = f"# users\nalice:{BCRYPT}\nbob:{hash}\n".encode()
    with pytest.raises(ConfigurationError) as failure:
        read_users(content, "The file")
    assert str(failure.value) == f"The file, line 3, has {reason}; {MAKE}"


@pytest.mark.parametrize("line", ["alice", f":{BCRYPT}", f"a\x1bb:{BCRYPT}", f"a\0:{BCRYPT}", "$"])
def test_a_line_without_a_name_or_hash_is_explained(line: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^The file, line 1, is not name:hash; make"):
        read_users(line.encode(), "The file")


def test_a_name_occurs_once() -> None:
    with pytest.raises(ConfigurationError, match="line 2, has a name that is there before"):
        read_users(f"a:{BCRYPT}\na:{ARGON2ID}\n".encode(), "The file")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# alice\n", b"\r\n"])
def test_a_file_without_users_is_explained(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=f"^The file names nobody; {re.escape(MAKE)}$"):
        read_users(content, "The file")


def test_no_text_repeats_a_hash_or_a_password() -> None:
    for line in ("hunter2", "alice:hunter2", "alice:$2y$05$hunter2"):
        with pytest.raises(ConfigurationError) as failure:
            read_users(line.encode(), "The file")
        assert "hunter2" not in str(failure.value)


@given(st.binary(max_size=100) | st.text(":$2ya10argonid.=,/\n", max_size=100).map(str.encode))
def test_no_bytes_make_it_raise_anything_else(content: bytes) -> None:
    with contextlib.suppress(ConfigurationError):
        read_users(content, "The file")


@pytest.mark.parametrize("password", [b"\xff\xfe", "pässwörd".encode(), b"x" * 72, b"a:b"])
def test_passwords_are_bytes(password: bytes) -> None:
    hash = bcrypt.hashpw(password, bcrypt.gensalt(4)).decode()
    assert is_right(hash, password)
    assert not is_right(hash, password[:-1])


def test_a_hash_that_argon2_cannot_use_is_nobodys() -> None:
    assert not is_right("$argon2id$v=19$m=7168,t=0,p=1$c2FsdHNhbHQ$aGFzaGhhc2g", b"secret")
