"""Which SCRAM credentials are taken, and what is made up for users without any."""

from __future__ import annotations

import contextlib
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.identity.scram import Phantoms, Users, line, read_users
from gateway.wire.scram import MOST_ITERATIONS, ScramSecret, scram_keys

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
MECHANISMS = pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
SALT = b"0123456789abcdef"
GOOD = line("alice", "secret", SHA_256, 4096, SALT)


def read(*lines: str) -> Users:
    return read_users("\n".join(lines).encode(), "The file")


@MECHANISMS
def test_a_line_is_read_as_it_was_made(mechanism: str) -> None:
    keys = scram_keys(mechanism, "sécret".encode(), SALT, 4096)
    alice = ScramSecret("alice", mechanism, SALT, 4096, keys.stored, keys.server)
    assert read(line("alice", "sécret", mechanism, 4096, SALT)) == {("alice", mechanism): alice}


def test_a_line_has_the_keys_that_other_programs_compute() -> None:
    """Of the password of RFC 7677."""
    made = line("user", "pencil", SHA_256, 4096, b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    assert made == (
        "user:SCRAM-SHA-256:4096:W22ZaJ0SNY7soEsUEjb6gQ==:"
        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def test_each_line_has_a_salt_of_its_own() -> None:
    assert line("alice", "secret", iterations=4096) != line("alice", "secret", iterations=4096)


def test_a_user_may_have_a_line_for_each_mechanism() -> None:
    found = read(
        GOOD, "# others", "", line("alice", "other", SHA_512, 4096), GOOD.replace("a", "b", 1)
    )
    assert set(found) == {("alice", SHA_256), ("alice", SHA_512), ("blice", SHA_256)}


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "a\0"])
def test_nobody_has_a_name_that_would_break_the_line(name: str) -> None:
    with pytest.raises(ValueError, match="a name with"):
        line(name, "secret")


FIELDS = GOOD.split(":")


def other(field: int, text: str) -> str:
    return ":".join([*FIELDS[:field], text, *FIELDS[field + 1 :]])


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(other(0, ""), id="no name"),
        pytest.param(other(0, "a\x1fb"), id="a control character"),
        pytest.param(other(0, "a:b"), id="a colon"),
        pytest.param(GOOD + ":", id="a field more"),
        pytest.param(GOOD.rpartition(":")[0], id="a field less"),
        pytest.param(other(1, "scram-sha-256"), id="small letters"),
        pytest.param(other(1, "PLAIN"), id="another mechanism"),
        pytest.param(other(2, "4095"), id="few iterations"),
        pytest.param(other(2, str(MOST_ITERATIONS + 1)), id="many iterations"),
        pytest.param(other(2, "9" * 5000), id="iterations without end"),
        pytest.param(other(2, "-4096"), id="below zero"),
        pytest.param(other(2, "٤٠٩٦"), id="other digits"),
        pytest.param(other(2, ""), id="no iterations"),
        pytest.param(other(3, ""), id="no salt"),
        pytest.param(other(3, "c2hvcnQ="), id="a short salt"),
        pytest.param(other(3, "QUFB" * 40), id="a long salt"),
        pytest.param(other(3, "!!!!" * 8), id="a salt that is not base64"),
        pytest.param(other(4, FIELDS[3]), id="a short key"),
        pytest.param(other(5, FIELDS[5] + FIELDS[5]), id="two keys"),
        pytest.param(other(5, "ä"), id="a key beyond ASCII"),
    ],
)
def test_a_wrong_line_is_named_without_its_keys(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^The file, line 3, (is|has) ") as failure:
        read("# users", "", wrong)
    assert not [it for it in FIELDS[3:] if it in str(failure.value)]


@given(st.binary())
def test_any_other_content_is_a_mistake(content: bytes) -> None:
    with contextlib.suppress(ConfigurationError):
        read_users(content, "The file")


# -- users that nobody knows --


@MECHANISMS
def test_who_is_not_known_looks_like_others(mechanism: str) -> None:
    shapes = {(4096, 16), (8192, 32)}
    users = read(
        *(line(f"{size}", "x", mechanism, count, bytes(size)) for count, size in shapes),
        line("other", "x", SHA_512 if mechanism == SHA_256 else SHA_256, 4097, bytes(20)),
    )
    phantoms = Phantoms(users, b"key")
    made_up = [phantoms.secret(f"user-{number}", mechanism) for number in range(100)]
    assert {(it.iterations, len(it.salt)) for it in made_up} == shapes
    assert len({it.salt for it in made_up}) == 100
    known = next(iter(users.values()))
    assert {len(it.stored_key) for it in made_up} == {len(known.stored_key)}
    assert {len(it.server_key) for it in made_up} == {len(known.server_key)}


def test_who_is_not_known_is_the_same_each_time_and_to_all_who_share_the_key() -> None:
    one, same, another = (Phantoms(read(GOOD), key) for key in (b"key", b"key", b"other"))
    assert one.secret("carol", SHA_256) == same.secret("carol", SHA_256)
    assert one.secret("carol", SHA_256).salt != another.secret("carol", SHA_256).salt
    assert one.secret("carol", SHA_256).salt != one.secret("carol", SHA_512).salt


def test_a_mechanism_that_nobody_has_is_answered_in_the_usual_way() -> None:
    usual = read(line("alice", "secret", SHA_512))["alice", SHA_512]
    made_up = Phantoms(read(GOOD), b"key").secret("carol", SHA_512)
    assert (made_up.iterations, len(made_up.salt)) == (usual.iterations, len(usual.salt))


def test_other_users_of_the_same_kind_change_nothing_for_who_is_not_known() -> None:
    """Otherwise each change of the file would tell who is in it."""
    before, after = (
        Phantoms(read(*lines), b"key").secret("carol", SHA_256)
        for lines in ([GOOD], [GOOD, line("bob", "x", SHA_256, 4096, SALT)])
    )
    assert before == after
