from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.identity.credential import LARGEST_TOKEN, NoCredential, OwnCredential, TokenFile
from gateway.wire.contract import Credential


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_bytes(b"first\n")
    return path


def current(file: TokenFile) -> bytes:
    credential = file.current()
    assert credential.method == "token"
    return credential.data


def test_no_credential_has_the_method_none() -> None:
    nobody: OwnCredential = NoCredential()
    assert nobody.current() == Credential("none", b"")


def test_the_token_is_stripped(path: Path) -> None:
    path.write_bytes(b"\r\n token \n")
    assert current(TokenFile(path)) == b"token"


def test_a_changed_file_is_read_again(path: Path) -> None:
    file = TokenFile(path)
    path.write_bytes(b"second, longer")
    assert current(file) == b"second, longer"


def test_a_change_of_the_same_size_is_noticed(path: Path) -> None:
    file = TokenFile(path)
    path.write_bytes(b"later\n")
    os.utime(path, ns=(0, 0))
    assert current(file) == b"later"


def test_an_unchanged_file_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TokenFile(path)
    monkeypatch.setattr(Path, "open", None)
    assert current(file) == b"first"


def test_a_swapped_symbolic_link_is_noticed(tmp_path: Path) -> None:
    """Kubernetes updates a mounted secret so: token -> ..data/token, ..data -> a new folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
        os.utime(tmp_path / name / "token", ns=(1, 1))
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "token").symlink_to("..data/token")
    file = TokenFile(tmp_path / "token")
    assert current(file) == b"one"
    (tmp_path / "..data_tmp").symlink_to("two")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert current(file) == b"two"


def test_the_last_token_stays_when_the_file_is_gone(path: Path) -> None:
    file = TokenFile(path)
    path.unlink()
    assert current(file) == b"first"
    assert file.last_error == "cannot be read: No such file or directory"
    path.write_bytes(b"second")
    assert current(file) == b"second"
    assert file.last_error is None


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"x" * 20_000, f"is larger than {LARGEST_TOKEN} bytes"),
    ],
)
def test_the_last_token_stays_when_the_file_has_none(
    path: Path, content: bytes, error: str
) -> None:
    file = TokenFile(path)
    path.write_bytes(content)
    assert current(file) == current(file) == b"first"
    assert file.last_error == error
    path.write_bytes(b"second")
    assert current(file) == b"second"
    assert file.last_error is None


def test_the_same_file_after_an_absence_is_good_again(path: Path) -> None:
    file = TokenFile(path)
    away = path.rename(path.with_name("away"))
    file.current()
    away.rename(path)
    assert current(file) == b"first"
    assert file.last_error is None


def test_a_missing_file_at_the_start_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read: No such file.*JSON Web Token"):
        TokenFile(tmp_path / "token")


def test_an_empty_file_at_the_start_is_explained(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="is empty"):
        TokenFile(path)


# -- when a token expires --


def token_of(payload: bytes) -> bytes:
    return b".".join((b"header", urlsafe_b64encode(payload).rstrip(b"="), b"signature"))


@pytest.mark.parametrize(
    ("payload", "expires"),
    [
        (b'{"exp": 1700000000}', 1.7e9),
        (b'{"exp": 1700000000.5}', 1_700_000_000.5),
        (b'{"exp": -1}', -1.0),
        (b'{"sub": "gateway"}', None),
        (b'{"exp": null}', None),
        (b'{"exp": "1700000000"}', None),
        (b'{"exp": [1]}', None),
        (b'{"exp": NaN}', None),
        (b'{"exp": Infinity}', None),
        (b'{"exp": 1e999}', None),
        (b'{"exp": 1%s}' % (b"0" * 400), None),
        (b'{"exp": 1%s}' % (b"0" * 5000), None),
        (b"[" * 9000, None),
        (b"[]", None),
        (b"\xff", None),
        (b"", None),
    ],
    ids=lambda it: str(it)[:30],
)
def test_the_time_at_which_a_token_expires_is_read_whatever_stands_there(
    path: Path, payload: bytes, expires: float | None
) -> None:
    path.write_bytes(token_of(payload))
    credential = TokenFile(path).current()
    assert credential.data == token_of(payload)
    assert credential.expires_at == expires


@pytest.mark.parametrize("token", [b"opaque", b"a.b", b"a.b.c.d", b"..", b"a.\xff.c", b"a.=.c"])
def test_what_is_no_web_token_never_expires(path: Path, token: bytes) -> None:
    path.write_bytes(token)
    assert TokenFile(path).current() == Credential("token", token, None)
