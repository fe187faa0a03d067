from __future__ import annotations

from pathlib import Path

import pytest

from gateway.brokers.seal import SEAL_OVERHEAD, SealKey
from gateway.errors import ConfigurationError


def test_equal_texts_have_equal_seals() -> None:
    key = SealKey(bytes(range(32)))
    assert key.seal(b"text") == key.seal(b"text") == SealKey(bytes(range(32))).seal(b"text")
    assert len(key.seal(b"text")) == len(b"text") + SEAL_OVERHEAD


def test_only_the_sealing_key_opens_a_seal() -> None:
    key, other = SealKey.random(), SealKey.random()
    assert key.open(key.seal(b"text")) == b"text"
    assert other.open(key.seal(b"text")) is None


def test_a_key_with_the_same_id_does_not_open_it() -> None:
    first = SealKey(b"first key of thirty-two bytes...")
    same_id = next(
        key
        for number in range(100_000)
        if (key := SealKey(number.to_bytes(32, "big"))).key_id == first.key_id
    )
    assert same_id.open(first.seal(b"text")) is None


@pytest.mark.parametrize("length", [0, 1, SEAL_OVERHEAD])
def test_a_seal_that_is_too_short_does_not_open(length: int) -> None:
    key = SealKey.random()
    assert key.open(key.seal(b"text")[:length]) is None


def test_a_changed_byte_does_not_open() -> None:
    key = SealKey.random()
    sealed = key.seal(b"some text")
    for at in range(len(sealed)):
        changed = bytes((*sealed[:at], sealed[at] ^ 1, *sealed[at + 1 :]))
        assert key.open(changed) is None


@pytest.mark.parametrize("size", [32, 33, 64, 4096])
def test_any_file_of_enough_bytes_is_a_key(tmp_path: Path, size: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(bytes(number % 256 for number in range(size)))
    key = SealKey.from_file(path)
    assert SealKey.from_file(path).open(key.seal(b"text")) == b"text"


@pytest.mark.parametrize("content", [b"", b"too short", bytes(range(31)), bytes(64), b"ab" * 2049])
def test_an_invalid_key_file_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="head -c 32 /dev/urandom") as failure:
        SealKey.from_file(path)
    assert "too short" not in str(failure.value)


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        SealKey.from_file(tmp_path / "key")


def test_the_repr_of_a_key_has_no_secret() -> None:
    assert repr(SealKey(bytes(range(32)))) == f"SealKey(key_id={SealKey(bytes(range(32))).key_id})"
