"""Names and passwords: whose are accepted, and how often a hash is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import argon2
import bcrypt
import pytest
import trio
import trio.testing

from gateway.config import model
from gateway.errors import ConfigurationError
from gateway.identity.htpasswd import LEAST_COST, LEAST_MEMORY
from gateway.identity.verified import Verified
from gateway.verifiers import Needs, passwords
from gateway.verifiers.passwords import (
    LONGEST_PASSWORD,
    WRONG,
    PasswordVerifier,
    Unsettled,
    make_verifier,
)
from gateway.wire.contract import Denial

ALICE = Verified("alice", None)
SECRET, OTHER = (
    bcrypt.hashpw(password, b"$2b$%02d$abcdefghijklmnopqrstuu" % LEAST_COST).decode()
    for password in (b"secret", b"x")
)


class Computing:
    """Notes the hashes that are computed. A password is right that the hash ends with. `held`:
    cleared, hashes take until it is set."""

    def __init__(self) -> None:
        self.hashes: list[str] = []
        self.held = Event()
        self.held.set()

    def is_right(self, hash: str, password: bytes) -> bool:
        self.hashes.append(hash)
        assert self.held.wait(20)
        return hash.encode().endswith(password)


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch) -> Computing:
    computing = Computing()
    monkeypatch.setattr(passwords, "is_right", computing.is_right)
    return computing


class Setting:
    """A verifier of the users in a file, and what it logs."""

    def __init__(self, folder: Path, content: str) -> None:
        self.path = folder / "users"
        self.path.write_text(content)
        self.logged: list[tuple[str, dict[str, object]]] = []
        self.verifier = PasswordVerifier(self.path, self.log)

    def log(self, event: str, **values: object) -> None:
        self.logged.append((event, values))

    def write(self, content: str) -> None:
        """Replace the file, as editors do."""
        other = self.path.with_suffix(".new")
        other.write_text(content)
        other.rename(self.path)

    def shown(self, data: bytes) -> Verified | Denial | Unsettled:
        return self.verifier.verify(data, 0.0)

    async def settled(self, data: bytes) -> Verified | Denial:
        answer = self.shown(data)
        return await answer.outcome() if isinstance(answer, Unsettled) else answer


Make = Callable[[str], Setting]


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path, f"alice:{SECRET}\nbob:{OTHER}\n")


def hash_of(end: str) -> str:
    """Return a hash of which `Computing` takes `end` as the password."""
    return SECRET[: -len(end)] + end


# -- who is accepted --


@pytest.mark.parametrize("prefix", ["$2y$", "$2b$", "$2a$"])
async def test_a_password_by_bcrypt(tmp_path: Path, prefix: str) -> None:
    setting = Setting(tmp_path, f"alice:{prefix}{SECRET[4:]}")
    assert await setting.settled(b"alice:secret") == ALICE
    assert await setting.settled(b"alice:Secret") is WRONG


async def test_a_password_by_argon2id(tmp_path: Path) -> None:
    hash = argon2.PasswordHasher(5, LEAST_MEMORY, 1).hash(b"secret")
    setting = Setting(tmp_path, f"alice:{hash}")
    assert await setting.settled(b"alice:secret") == ALICE
    assert await setting.settled(b"alice:Secret") is WRONG


@pytest.mark.parametrize(
    "data",
    [
        b"alice:",
        b"alice:secret ",
        b"alice:x",
        b"bob:secret",
        b"carol:secret",
        b"ALICE:secret",
        b" alice:secret",
        b":secret",
        b"alice\0:secret",
        b"\xff:secret",
        f"alice:{SECRET}".encode(),
    ],
)
async def test_a_wrong_name_or_password_is_refused(setting: Setting, data: bytes) -> None:
    assert await setting.settled(data) is WRONG


@pytest.mark.parametrize("data", [b"", b"alice", b"secret", b"\xff"])
def test_what_is_no_pair_is_refused_at_once(setting: Setting, data: bytes) -> None:
    assert setting.shown(data) is WRONG


async def test_a_password_may_hold_colons(tmp_path: Path) -> None:
    hash = bcrypt.hashpw(b"a:b::", bcrypt.gensalt(LEAST_COST)).decode()
    setting = Setting(tmp_path, f"alice:{hash}")
    assert await setting.settled(b"alice:a:b::") == ALICE
    assert await setting.settled(b"alice:a") is WRONG


async def test_bytes_that_bcrypt_would_not_read_are_refused_at_once(
    tmp_path: Path, computing: Computing
) -> None:
    longest = b"x" * LONGEST_PASSWORD
    hash = bcrypt.hashpw(longest, bcrypt.gensalt(LEAST_COST)).decode()
    setting = Setting(tmp_path, f"alice:{hash}")
    assert setting.shown(b"alice:" + longest + b"y") is WRONG
    assert setting.shown(b"alice:x\0") is WRONG
    assert isinstance(setting.shown(b"alice:" + longest), Unsettled)
    assert computing.hashes == []


async def test_the_longest_password_is_accepted(tmp_path: Path) -> None:
    longest = b"x" * LONGEST_PASSWORD
    hash = bcrypt.hashpw(longest, bcrypt.gensalt(LEAST_COST)).decode()
    assert await Setting(tmp_path, f"alice:{hash}").settled(b"alice:" + longest) == ALICE


async def test_an_unknown_user_computes_a_hash_too(setting: Setting, computing: Computing) -> None:
    """The time would tell who is known."""
    known = hash_of("secret")
    setting.write(f"alice:{known}")
    assert await setting.settled(b"carol:secret") is WRONG
    assert await setting.settled(b"carol:secret") is WRONG
    assert computing.hashes == [known, known]


# -- what is remembered --


async def test_a_right_password_is_remembered(setting: Setting, computing: Computing) -> None:
    setting.write(f"alice:{hash_of('secret')}\nbob:{OTHER}")
    assert await setting.settled(b"alice:secret") == ALICE
    for _ in range(3):
        assert setting.shown(b"alice:secret") == ALICE
    assert len(computing.hashes) == 1


async def test_a_remembered_password_is_nobody_elses(
    setting: Setting, computing: Computing
) -> None:
    same = hash_of("secret")
    setting.write(f"alice:{same}\nbob:{hash_of('other')}")
    await setting.settled(b"alice:secret")
    assert isinstance(setting.shown(b"bob:secret"), Unsettled)
    assert isinstance(setting.shown(b"alice:secret2"), Unsettled)
    assert isinstance(setting.shown(b"carol:secret"), Unsettled)


async def test_a_wrong_password_is_not_remembered(setting: Setting, computing: Computing) -> None:
    for _ in range(3):
        assert await setting.settled(b"alice:wrong") is WRONG
    assert len(computing.hashes) == 3


async def test_the_oldest_password_is_forgotten_first(
    tmp_path: Path, computing: Computing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "REMEMBERED", 2)
    names = ("a", "b", "c")
    setting = Setting(tmp_path, "".join(f"{it}:{hash_of('secret' + it)}\n" for it in names))
    for it in names:
        assert await setting.settled(f"{it}:secret{it}".encode()) == Verified(it, None)
    assert isinstance(setting.shown(b"a:secreta"), Unsettled)
    assert setting.shown(b"b:secretb") == Verified("b", None)
    assert setting.shown(b"c:secretc") == Verified("c", None)


async def test_no_password_is_kept(setting: Setting) -> None:
    assert await setting.settled(b"alice:secret") == ALICE
    assert not any(b"secret" in it for it in setting.verifier._right)


# -- changes of the file --


async def test_a_new_user_is_known_at_once(setting: Setting) -> None:
    setting.write(f"carol:{SECRET}")
    assert await setting.settled(b"carol:secret") == Verified("carol", None)
    assert await setting.settled(b"alice:secret") is WRONG


async def test_a_changed_password_counts_at_once(setting: Setting) -> None:
    assert await setting.settled(b"alice:secret") == ALICE
    setting.write(f"alice:{OTHER}")
    assert await setting.settled(b"alice:secret") is WRONG
    assert await setting.settled(b"alice:x") == ALICE


async def test_a_removed_user_is_refused_at_once(setting: Setting) -> None:
    assert await setting.settled(b"alice:secret") == ALICE
    setting.write(f"bob:{OTHER}")
    assert await setting.settled(b"alice:secret") is WRONG


async def test_a_new_hash_of_the_same_password_is_computed_once_more(
    setting: Setting, computing: Computing
) -> None:
    setting.write(f"alice:{hash_of('secret')}")
    await setting.settled(b"alice:secret")
    setting.write(f"alice:$2y${hash_of('secret')[4:]}")
    assert isinstance(setting.shown(b"alice:secret"), Unsettled)


async def test_a_user_who_is_removed_while_the_hash_is_computed_is_refused(
    setting: Setting, computing: Computing
) -> None:
    setting.write(f"alice:{hash_of('secret')}")
    computing.held.clear()
    answers: list[Verified | Denial] = []

    async def settle() -> None:
        answers.append(await setting.settled(b"alice:secret"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle)
        await trio.testing.wait_all_tasks_blocked()
        setting.write(f"bob:{OTHER}")
        setting.shown(b"bob:x")
        computing.held.set()
    assert answers == [WRONG]
    setting.write(f"alice:{hash_of('secret')}")
    assert isinstance(setting.shown(b"alice:secret"), Unsettled)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("alice:secret", ", line 1, has neither bcrypt nor argon2id; make the line with"),
        ("", " names nobody"),
        (None, " cannot be read: No such file or directory"),
    ],
    ids=["weak", "empty", "missing"],
)
async def test_a_file_that_becomes_wrong_is_logged_once_and_the_last_good_one_counts(
    setting: Setting, content: str | None, reason: str
) -> None:
    if content is None:
        setting.path.unlink()
    else:
        setting.write(content)
    for _ in range(3):
        assert await setting.settled(b"alice:secret") == ALICE
    ((event, values),) = setting.logged
    assert event == "password_file_unusable"
    assert values["file"] == str(setting.path)
    assert str(values["error"]).startswith(f"The password file {setting.path}{reason}")
    setting.write(f"carol:{SECRET}")
    assert await setting.settled(b"carol:secret") == Verified("carol", None)
    assert len(setting.logged) == 1


def test_an_unchanged_file_is_not_read_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[bytes] = []

    def read(content: bytes, _what: str) -> dict[str, str]:
        reads.append(content)
        return {"alice": SECRET}

    monkeypatch.setattr(setting.verifier._file, "_read", read)
    for _ in range(3):
        setting.shown(b"alice:secret")
    assert reads == []
    setting.write("changed")
    for _ in range(3):
        setting.shown(b"alice:secret")
    assert reads == [b"changed"]


# -- floods --


async def test_a_password_that_another_connection_has_shown_meanwhile_costs_no_second_hash(
    setting: Setting, computing: Computing
) -> None:
    setting.write(f"alice:{hash_of('secret')}")
    first, second = setting.shown(b"alice:secret"), setting.shown(b"alice:secret")
    for answer in (first, second):
        assert isinstance(answer, Unsettled)
        assert await answer.outcome() == ALICE
    assert len(computing.hashes) == 1


async def test_a_remembered_password_does_not_wait_for_others(
    setting: Setting, computing: Computing
) -> None:
    setting.write(f"alice:{hash_of('secret')}")
    assert await setting.settled(b"alice:secret") == ALICE
    computing.held.clear()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(setting.settled, b"alice:wrong")
        await trio.testing.wait_all_tasks_blocked()
        assert setting.shown(b"alice:secret") == ALICE
        computing.held.set()


# -- the start --


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "names nobody"),
        ("alice:$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/", "line 1, has neither bcrypt nor argon2id"),
        ("#" * (4 * 1024 * 1024 + 1), "is larger than 4194304 bytes: is it the right one?"),
    ],
    ids=["missing", "empty", "weak", "large"],
)
def test_a_wrong_file_is_explained_at_the_start(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "users"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=reason) as failure:
        make_verifier(model.Basic.model_construct(htpasswd_file=path), Needs(pytest.fail))
    assert str(failure.value).startswith(f"The password file {path}")
